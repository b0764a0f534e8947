import pytest

from controller.model.java_regex import bytes_of, bytes_of_mask, expressions, java_pattern, matches, matching


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        ("broker-.*", "broker-1.example.com"),
        (r"\Qa.b\E-\d+", "a.b-12"),
        (r"\Qa.b", "a.b"),
        (r"(?<tenant>\w+)/\k<tenant>", "acme/acme"),
        (r"\p{Alpha}+\P{Digit}[\p{Digit}x]", "ab-7"),
        (r"broker-[0-9a-f]{2}\z", "broker-0f"),
        (r"(?i)BROKER-(?:a|b)\Z", "broker-A"),
        (r"[]a]+", "a]"),
        (r"[a&|b]+", "a|&b"),
        (r"(?!broker-9)broker-\d(?<=8)", "broker-8"),
        (r"br(?>o)ker-\d++", "broker-12"),
        (r"\Abroker\b-\B-(\d)\1", "broker--11"),
        (r"[\d\t]+", "1\t"),
        ("[::1]|\\[::1\\]", "[::1]"),
        ("", ""),
    ],
)
def test_an_expression_matches_what_it_matches_in_java(regex: str, text: str) -> None:
    assert matches([regex], text)


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        ("broker-0", "broker-01"),
        ("roker-0", "broker-0"),
        (r"\Qa.b\E", "axb"),
        (r"broker-\d", "broker-٣"),
        (r"\P{Alpha}", "a"),
        ("BROKER", "broker"),
    ],
)
def test_the_whole_text_must_match_and_classes_are_ascii(regex: str, text: str) -> None:
    assert not matches([regex], text)


@pytest.mark.parametrize(
    "regex",
    [
        "[a-z&&[^b]]", "[a[bc]]", "[a", r"\p{IsGreek}", r"[\P{Alpha}]", r"[\b]", r"(a)[\1]", r"\h+", r"\R",
        r"\v", r"\07", "(?x)a b", "a(?i)b", "a{,3}", "a{", "(?<=a*)b", "(?P<name>a)", "(?#no)a", "(", "a)", "*", "\\",
    ],
)  # fmt: skip
def test_syntax_that_python_reads_differently_is_not_understood(regex: str) -> None:
    assert java_pattern(regex) is None
    assert not matches([regex], regex)


@pytest.mark.parametrize("sign", list("\\^$.|?*+()[]{}"))
def test_an_expression_with_a_sign_is_not_taken_for_the_text_that_it_is(sign: str) -> None:
    expression = f"a{sign}b"
    assert expressions((expression, "a-b")).texts == {"a-b"}
    pattern = java_pattern(expression)
    assert matches([expression], expression) == (pattern is not None and pattern.fullmatch(expression) is not None)


def test_a_text_matches_itself_as_java_and_python_have_it() -> None:
    texts = ["acme/orders", "a b#c", "", "x&&y~~z--", "ä/ü", "A", "a\tb", "a" * 1000]
    found = expressions(tuple(texts))
    assert found.texts == set(texts)
    for text in texts:
        pattern = java_pattern(text)
        assert pattern is not None
        for other in texts:
            assert (pattern.fullmatch(other) is not None) == matches([text], other) == (text == other)


def test_one_match_among_several_is_enough_even_beside_one_that_is_not_understood() -> None:
    found = matching(("[a", "b.*", "c"), ("a", "bb", "c", "d"))
    assert found.tolist() == [False, True, True, False]
    assert not found.flags.writeable, "the next one who asks gets the same"
    assert not matches([], "a")


@pytest.mark.parametrize(
    "regex",
    [
        "(a+)+b", "(a|aa)+b", "((a)*)*b", "(?:a?){200}b", "(a{1,9})*b", "a*a*a*a*b", "a{300}", "(?:a{1,9}){9}",
        "a?" * 30 + "a" * 30, "(a|a)" * 30 + "b", "a{0,99}" * 9 + "b", "a" * 1001,
    ],
)  # fmt: skip
def test_an_expression_with_too_many_ways_to_match_is_not_understood(regex: str) -> None:
    assert java_pattern(regex) is None
    assert not matches([regex], "a" * 60)


def test_an_expression_may_match_in_a_million_ways_and_in_no_more() -> None:
    assert java_pattern("a{1,10}" * 6) is not None
    assert java_pattern("a{1,11}" + "a{1,10}" * 5) is None
    assert java_pattern("a{0,10}" + "a{1,10}" * 5) is None
    assert java_pattern("a{1,10}" * 6 + "a?") is None
    assert (java_pattern("a{255}") is None, java_pattern("a{256}") is None) == (False, True)
    assert java_pattern("a?" * 19) is not None
    assert java_pattern("a{2}" * 20) is not None, "there is one way for each"
    assert java_pattern("x|" + "a{1,10}" * 6) is not None, "each alternative counts by itself"
    assert java_pattern("a?" * 20) is None


def test_an_expression_of_1000_characters_is_understood_and_no_longer_one() -> None:
    assert matches(["a" * 1000], "a" * 1000)
    assert java_pattern("a" * 1001) is None


def test_the_slowest_expression_that_is_understood_is_fast_enough() -> None:
    # Steps grow with the third power of the length: a million here.  Four repetitions would take 100 times as long.
    assert not matches([".*a.*a.*b"], "a" * 200)


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        ("(prod|test)-broker-(1|2)", "prod-broker-2"),
        (".*-prod-.*[.]example[.].*", "b-prod-1.example.com"),
        ("(?:ab)+?c", "ababc"),
        ("(?:ab){2,3}c", "ababc"),
        ("a{2}b?", "aa"),
        ("broker-(?:[0-9]+)?", "broker-"),
        ("|".join(f"(?:broker-{n}.*)" for n in range(50)), "broker-49.example.com"),
    ],
)
def test_usual_repetitions_are_understood(regex: str, text: str) -> None:
    assert matches([regex], text)


def test_what_is_kept_of_a_list_counts_as_much_as_it_takes() -> None:
    names, mixed = ("acme/orders", "acme/bills"), ("acme/orders", "acme/.*")
    assert bytes_of(names, expressions(names)) == 800 + 2 * 80 + 11 + 10
    assert bytes_of(mixed, expressions(mixed)) == 800 + 2 * 80 + 11 + 7 + 600 + 40 * 7
    hosts = tuple(map(str, range(1000)))
    assert bytes_of_mask((mixed, hosts), matching(mixed, hosts)) == 800 + 2 * 80 + 11 + 7 + 1000
