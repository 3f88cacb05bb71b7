"""A place in the loop does nothing until a test arms it."""

from loopwright import failpoints


def test_an_armed_place_runs_its_action_until_it_is_disarmed() -> None:
    reached: list[str] = []
    failpoints.reach("model")
    failpoints.arm("model", lambda: reached.append("model"))
    failpoints.reach("model")
    failpoints.reach("put")
    failpoints.arm("model", None)
    failpoints.reach("model")
    assert reached == ["model"]
