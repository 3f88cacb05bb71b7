"""What follows forks forgets its parent in the child, and only there."""

from tests.support.processes import output


def test_a_child_begins_anew_and_its_parent_goes_on() -> None:
    script = """
        import gc, os
        from loopwright.state.forks import follow_forks
        from loopwright.state.lease import Leases

        class Counter:
            count = 0

            def forget_parent(self):
                self.count += 1

        leases, counter, gone = Leases(), Counter(), Counter()
        follow_forks(counter)
        follow_forks(gone)
        del gone
        gc.collect()
        leases.claim("t")
        for _ in range(2):  # what is needed for a fork is given back by it
            child = os.fork()
            if child == 0:
                leases.claim("t")
                follow_forks(Counter())
                os._exit(counter.count)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        try:
            leases.claim("t")
        except RuntimeError as error:
            print(counter.count, type(error).__name__)
    """
    assert output(script) == "0 BusyThreadError"
