"""`loopwright demo --crash`: a kill between an effect and its record, and the run that goes on."""

from pathlib import Path

from tests.cli.running import loopwright


def test_what_was_done_is_done_once_and_each_step_is_told(tmp_path: Path) -> None:
    done = loopwright(tmp_path, "demo", "--crash")
    assert (done.code, done.err) == (0, "")
    outbox, database = Path(done.said("outbox")), Path(done.said("database"))
    assert outbox.read_text(encoding="utf-8") == "Ada\nBo\n"
    assert outbox.parent == database.parent and database.is_relative_to(tmp_path)
    first, second = done.out.split("A second process")
    assert "send_invoice(to='Ada')" in first and "ok: The invoice to Ada is sent." in first
    assert first.index("send_invoice(to='Bo')") < first.index("!! SIGKILL")
    assert "killed by signal 9; the outbox: 1 to Ada, 1 to Bo" in first
    assert "interrupted" in second and "list_invoices()" in second
    assert "status    completed" in second
    assert done.said("sent") == "1 to Ada, 1 to Bo"


def test_it_takes_no_folder_of_yours(tmp_path: Path) -> None:
    done = loopwright(tmp_path, "demo", ".", "--crash")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1 and "give it no folder" in done.err
