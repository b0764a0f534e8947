"""The contract of controller.ports.collectors.CollectorGroup."""

from collections.abc import Callable
from typing import TypeAlias

from controller.ports.collectors import CollectorGroup

#: One more member of the same group; the fixture makes it leave at the end.
Member: TypeAlias = Callable[[], CollectorGroup]


class CollectorGroupContract:
    """Inherited by the tests of each implementation, which give the fixture ``member``."""

    def test_who_is_alone_leads(self, member: Member) -> None:
        seen = member().look()
        assert seen.leads
        assert seen.members == (seen.me,)
        assert seen.share == ()

    def test_what_is_shared_out_is_seen_with_the_next_look(self, member: Member) -> None:
        group = member()
        me = group.look().me
        group.share({me: ["broker-1:8080", "broker-2:8080"]})
        assert group.look().share == ("broker-1:8080", "broker-2:8080")
        group.share({me: ["broker-2:8080"]})
        assert group.look().share == ("broker-2:8080",)

    def test_of_two_the_first_leads(self, member: Member) -> None:
        first, second = member(), member()
        assert first.look().leads
        assert not second.look().leads
        assert first.look().leads

    def test_the_second_leads_once_the_first_has_left(self, member: Member) -> None:
        first, second = member(), member()
        assert first.look().leads
        assert not second.look().leads
        first.leave()
        assert second.look().leads

    def test_who_steps_back_lets_the_other_one_lead(self, member: Member) -> None:
        first, second = member(), member()
        assert first.look().leads
        assert not second.look().leads
        first.step_back()
        assert second.look().leads
        assert not first.look().leads
