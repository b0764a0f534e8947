import pytest

from controller.model.java_regex import Expressions, Hit, matches, quoted
from controller.model.java_regex.parser import MAX_NESTED


def refusal(regex: str) -> str:
    """Why *regex* cannot be read."""
    return Expressions([regex]).refused.get(regex, "")


def might(regex: str, *names: str) -> list[str]:
    """Those of *names* that *regex*, which cannot be read, might match."""
    hits = Expressions([regex]).hits(names)
    assert not any(hit.sure for found in hits.values() for hit in found)
    return sorted(hits)


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        ("broker-.*", "broker-1.example.com"),
        (r"\Qa.b\E-\d+", "a.b-12"),
        (r"\Qa.b", "a.b"),
        (r"\Qab\E*", "abbb"),
        (r"\p{Alpha}+\P{Digit}[\p{Digit}x]", "ab-7"),
        (r"broker-[0-9a-f]{2}\z", "broker-0f"),
        (r"(?i)BROKER-(?:a|b)\Z", "broker-A"),
        ("(?i:PROD)-.*", "Prod-1"),
        ("[]a]+", "a]"),
        ("[a&|b]+", "a|&b"),
        ("[a-z&&[^b]]+", "acd"),
        ("[a-f&&[^a-c]&&[^e]]", "d"),
        ("[0-9&&[^13]]", "2"),
        ("[a[bc]]+", "cab"),
        (r"[\P{Alpha}]", "1"),
        (r"a\h*b", "a b"),
        (r"\07*a", "a"),
        (r"\0101\x42\u0043\x{44}\c%", "ABCDe"),
        (r"(?<tenant>\w+)/ns", "acme/ns"),
        ("(?!broker-9)broker-[0-9]", "broker-8"),
        ("prod-(?!old).*", "prod-new"),
        (".*(?<!old)", "prod-new"),
        (r"broker-\d(?<=8)", "broker-8"),
        (r"br(?>o)ker-\d++", "broker-12"),
        (r"[a-z]++-\d*+", "broker-12"),
        (r"\Abroker\b-\B-(\d)", "broker--1"),
        ("(?x) broker - [0-9]+ # all of them", "broker-12"),
        ("a(?i)b|c", "C"),
        ("(?i)a(?-i)b", "Ab"),
        ("[::1]|\\[::1\\]", "[::1]"),
        ("(|a)b{0}c{1,}", "acc"),
        (r"\p{L}\p{Lu}\pN\p{IsAlphabetic}\p{Punct}", "aA1b-"),
    ],
)
def test_an_expression_matches_what_it_matches_in_java(regex: str, text: str) -> None:
    assert refusal(regex) == ""
    assert matches([regex], text)


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        ("broker-0", "broker-01"),
        ("roker-0", "broker-0"),
        (r"\Qa.b\E", "axb"),
        (r"\P{Alpha}", "a"),
        ("BROKER", "broker"),
        ("[0-9&&[^13]]", "1"),
        ("[0-9&&[^13]]", "&"),
        ("[^a[b]]", "b"),
        ("(?!.*prod).*", "acme-prod-1"),
        ("prod-(?!old).*", "prod-old-1"),
        (".*(?<!old)", "prod-old"),
        ("a(?:b|c(?i)d)E", "aBE"),
        ("(?x)a b", "a b"),
        (r"\d", "٣"),
    ],
)
def test_the_whole_text_must_match_and_classes_are_ascii(regex: str, text: str) -> None:
    assert refusal(regex) == ""
    assert not matches([regex], text)


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        (r"(a)\1", "a backreference"),
        (r"(?<n>a)\k<n>", "a backreference"),
        ("a.*(?=b).*", "a look around at a place that varies"),
        ("(?<=a*)b", "a look around at a place that varies"),
        ("a*+ab", "a possessive repetition that gives back what follows needs"),
        ("(?>a|ab)c", "an atomic group (?>...)"),
        ("a{1001}", "counts that come to more than 1,000 repetitions"),
        ("(?:a{100}){100}", "counts that come to more than 1,000 repetitions"),
        ("(?U)a", "a group of an unknown kind: (?U"),
        (r"\p{IsGreek}", "a property that is not known here: IsGreek"),
        (r"(?i)\p{Lower}", "Lower under (?i), which versions of Java read differently"),
        ("(?iu)ſ", "letters beyond ASCII under (?iu)"),
        (r"\G", r"\G"),
        (r"\N{DIGIT ONE}", r"an escape that is not known here: \N"),
        (r"\y", r"an escape that is not known here: \y"),
        ("a{,3}", "a { that begins no repetition"),
        ("a{2}{3}", "a repetition of a repetition"),
        ("a{3,2}", "a repetition with such limits: {3,2}"),
        ("(?x)[a b]", "white space in a set under (?x)"),
        ("[a&&]", "an intersection of sets in which one is missing"),
        ("[a", "a set that does not end"),
        ("[z-a]", "a range in a set that ends before it begins"),
        ("(", "a group that does not end"),
        ("a)", "a closing parenthesis without an opening one"),
        ("*", "nothing that * could repeat"),
        ("\\", "a backslash that escapes nothing"),
        ("(?<n>a)(?<n>b)", "two groups of the same name: n"),
        ("(?P<name>a)", "a group of an unknown kind: (?P"),
        ("(a|b)" * 2000, "longer than 8,192 characters"),
        ("(" * 60 + "a" + ")" * 60, f"groups or sets nested more than {MAX_NESTED} deep"),
        ("(?:[a-z]{300}){3}" * 12, "too large"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(regex: str, why: str) -> None:
    assert refusal(regex) == why
    assert not matches([regex], "a")


@pytest.mark.parametrize(
    ("regex", "found"),
    [
        ("acme/.*(?=x)", ["acme/prod", "acme/x"]),
        (r"acme/(\w)\1", ["acme/prod", "acme/x"]),
        ("acme/(?>p|pr)od", ["acme/prod"]),
        ("acme/p?[", ["acme/prod", "acme/x"]),
        ("acme/p[", ["acme/prod"]),
        ("acme/p|corp[", ["acme/prod", "acme/x", "corp/x"]),
        ("(?!corp)(?:(.)|acme/)(?>|p).*\\1", ["acme/prod", "acme/x"]),
        ("(?i)ACME/P(?>|r)rod", ["acme/prod"]),
        (r"\Qcorp/\E\1", ["corp/x"]),
        ("(?:corp|acme/p)(?>|r)x{2000}", []),
        ("(?>corp|acme)/.{0,2000}", ["acme/prod", "acme/x", "corp/x"]),
    ],
)
def test_what_is_refused_is_bounded_by_what_it_could_match(regex: str, found: list[str]) -> None:
    assert refusal(regex)
    assert might(regex, "acme/prod", "acme/x", "corp/x") == found


@pytest.mark.parametrize("sign", list("\\^$.|?*+()[]{}"))
def test_an_expression_with_a_sign_is_not_taken_for_the_text_that_it_is(sign: str) -> None:
    assert matches([f"a{sign}b"], f"a{sign}b") == (sign in ".]}")
    assert matches([quoted(f"a{sign}b")], f"a{sign}b")


def test_a_name_that_is_not_plain_ascii_is_matched_by_texts_and_beginnings_alone() -> None:
    found = Expressions(["zürich/.*", "zürich/nörd", "z.rich/n[oö]rd", "a[bc]"])
    hits = found.hits(["zürich/nörd", "ü"])
    assert set(hits["zürich/nörd"]) == {Hit(0, True), Hit(1, True), Hit(2, False)}
    assert "ü" not in hits


def test_the_first_hit_counts() -> None:
    found = Expressions(["acme/[xy]", "acme/.*", "acme/x", r"(.)\1.*", ".*"])
    assert found.first(["acme/x", "acme/z", "aa", "corp"]) == {
        "acme/x": Hit(0, True),
        "acme/z": Hit(1, True),
        "aa": Hit(3, False),
        "corp": Hit(3, False),
    }


def test_simple_expressions_are_not_limited_in_number() -> None:
    found = Expressions([*(f"broker-{i}.example.org" for i in range(5_000)), *(f"t{i}/.*" for i in range(5_000))])
    assert not found.refused
    assert found.first(["broker-7.example.org", "broker-7xexample.org", "t4999/x"]) == {
        "broker-7.example.org": Hit(7, True),
        "broker-7xexample.org": Hit(7, True),
        "t4999/x": Hit(9_999, True),
    }


def test_of_too_many_expressions_those_at_the_end_are_bounded_by_their_beginnings() -> None:
    found = Expressions([f"t{i}/(a|b).*" for i in range(5)], max_patterns=3)
    assert [*found.refused] == ["t3/(a|b).*", "t4/(a|b).*"]
    assert found.first(["t2/a", "t3/x", "t4/a", "u"]) == {
        "t2/a": Hit(2, True),
        "t3/x": Hit(3, False),
        "t4/a": Hit(4, False),
    }


@pytest.mark.parametrize(
    "bomb",
    [
        r"(?:(?:(?:(?:(?:\b){255}){255}){255}){255}){255}.*",
        "(?:(?:(?:(?:(?:a?){255}){255}){255}){255}){255}",
        "(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*){1,32000}", "x{1000}{1000}", "((a{1000}){1000}){1000}",
        r"(?i)\p{L}{1000}", "x" * 1_000_000, "(" * 1_000_000, "[" * 8_000, "(?:" * 2_000 + ")" * 2_000,
        "|".join(f"a{i}.*" for i in range(1_200)), "a?" * 4_000 + "a" * 4_000, "(?:.?){1000}", "[^a]" * 2_000,
        "(?:.{0,30}a){30}", "(?=" * 2_000, r"\Q" * 4_000, "(?i)" * 2_000, "&&" * 4_000, "[a&&" * 2_000,
        "(?:(?!a)b)*" * 700, "a*+" * 2_700, "(?>a*)" * 1_300, "(?:" * 49 + "a" + ")*" * 49, r"\1" * 4_000,
    ],
)  # fmt: skip
def test_a_bomb_is_read_or_refused_and_the_expressions_beside_it_are_answered(bomb: str) -> None:
    # An engine that tries one way after the other would not end within the time that the tests have.
    hits = Expressions([bomb, "acme/.*"]).first([*("a" * 60 + str(i) for i in range(10)), "acme/x"])
    assert hits["acme/x"].number in (0, 1)
