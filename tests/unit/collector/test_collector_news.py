"""What is logged when it changes."""

from controller.collector.news import News


def test_a_thing_is_news_when_it_begins_changes_and_ends() -> None:
    news = News()
    assert not news.is_news("broker", "")
    assert news.is_news("broker", "silent")
    assert not news.is_news("broker", "silent")
    assert news.is_news("broker", "slow")
    assert news.is_news("broker", "")
    assert not news.is_news("broker", "")


def test_things_do_not_know_of_each_other() -> None:
    news = News()
    assert news.is_news("one", "silent")
    assert news.is_news("two", "silent")


def test_what_has_gone_is_forgotten_and_news_when_it_comes_back() -> None:
    news = News()
    assert news.is_news("one", "silent")
    assert news.is_news("two", "silent")
    news.retain({"two"})
    assert news.is_news("one", "silent")
    assert not news.is_news("two", "silent")
