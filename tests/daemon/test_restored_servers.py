"""A server that was restored from an older back-up hands out old seqs again: that must not make a persona deaf."""

from tests.fakes.fake_clock import pass_time, stepped


@stepped
async def test_after_a_restore_new_messages_are_taken_and_old_ones_are_not_taken_twice(stage):
    async with stage.running():
        kept = stage.ask("kept in the back-up")
        await stage.until_answered(kept)
        back_up = list(stage.server._conversations[stage.cid].messages)
        lost = stage.ask("lost with the restore")
        await stage.until_answered(lost)
        stage.room.cut_doorbell(stay_down=True)
        await pass_time(1)

        stage.server._conversations[stage.cid].messages[:] = back_up
        stage.room.mend_doorbell()
        await pass_time(60)
        question = stage.ask("asked after it")
        await stage.until_answered(question)

    assert len(stage.answers_to(question)) == 1
    assert len(stage.answers_to(kept)) == 1
    assert any("history went back" in str(line) for line in stage.log.lines)
