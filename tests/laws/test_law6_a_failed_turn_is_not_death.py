"""Law 6: "this turn failed" is not "I am dead". Obituaries need proof of death; failures count per trigger message."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.notices import Notice, obituary, text
from sentinel.core.obituary import Counted, Dead, Outage, judge
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Limits
from sentinel.core.turns import Queued, after_batch_failure

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LIMITS = Limits()
PROOF = {FailureClass.AUTH, FailureClass.QUOTA, FailureClass.CONFIG, FailureClass.MISSING}
NO_PROOF = [kind for kind in FailureClass if kind not in PROOF | {FailureClass.RATE}]

FRIGHTENING = "401 unauthorized: quota exceeded, not logged in, command not found, usage limit reached"


class Books:
    """The counters as the daemon keeps them: per trigger, nothing for the persona."""

    def __init__(self):
        self.failures = Counter()
        self.rates = Counter()

    def fail(self, trigger, kind):
        verdict = judge(
            Failure(kind, FRIGHTENING),
            failures_before=self.failures[trigger],
            rates_before=self.rates[trigger],
            thread_failures=1,
            now=NOW,
            limits=LIMITS,
        )
        self.rates[trigger] = self.rates[trigger] + 1 if kind is FailureClass.RATE else 0
        if isinstance(verdict, Counted):
            self.failures[trigger] = verdict.failures
        return verdict


@given(
    kind=st.sampled_from(NO_PROOF), failures=st.integers(min_value=0, max_value=10_000), evidence=st.text()
)
def test_no_number_of_failures_and_no_wording_is_death(kind, failures, evidence):
    """Only the class decides; what the evidence says is for operators."""
    verdict = judge(
        Failure(kind, evidence + FRIGHTENING),
        failures_before=failures,
        rates_before=0,
        thread_failures=9,
        now=NOW,
        limits=LIMITS,
    )

    assert not isinstance(verdict, Dead)


@pytest.mark.parametrize("kind", sorted(PROOF))
def test_proof_of_death_is_death_at_once(kind):
    assert Books().fail("m1", kind) == Dead(kind)


@given(st.lists(st.sampled_from(NO_PROOF), max_size=60))
def test_unrelated_messages_that_fail_once_each_are_nothing_in_a_row(kinds):
    books = Books()

    verdicts = [books.fail(f"m{number}", kind) for number, kind in enumerate(kinds)]

    assert not any(isinstance(one, Dead) or (isinstance(one, Counted) and one.notice) for one in verdicts)


@given(
    st.lists(
        st.tuples(st.sampled_from(["m1", "m2", "m3"]), st.sampled_from([*NO_PROOF, FailureClass.RATE])),
        max_size=80,
    )
)
def test_however_messages_are_interleaved_each_gets_one_notice_at_its_own_third_failure(steps):
    books = Books()
    counted, noticed = Counter(), Counter()

    for trigger, kind in steps:
        verdict = books.fail(trigger, kind)
        if isinstance(verdict, Counted):
            counted[trigger] += 1
            noticed[trigger] += verdict.notice

    assert noticed == Counter({one: 1 for one, times in counted.items() if times >= 3})


def test_three_rate_limits_are_a_wall_only_for_the_same_message_in_a_row():
    rate = FailureClass.RATE
    books = Books()

    spread = [books.fail(trigger, rate) for trigger in ("m1", "m2", "m3", "m1", "m2")]
    broken_off = [books.fail("m1", FailureClass.TIMEOUT), books.fail("m1", rate), books.fail("m1", rate)]
    third = books.fail("m1", rate)

    assert not any(isinstance(one, Dead) for one in spread + broken_off)
    assert third == Dead(rate)


@pytest.mark.parametrize("kind", [FailureClass.UNAVAILABLE, FailureClass.BUSY, FailureClass.ROOM_UNAVAILABLE])
def test_an_outage_counts_for_nobody_however_long(kind):
    books = Books()

    verdicts = {books.fail("m1", kind) for _ in range(1_000)}

    assert verdicts == {Outage()}
    assert not books.failures


def test_a_failed_batch_counts_for_none_of_its_messages():
    batch = tuple(Queued("c1", f"m{seq}", seq, 0.0, 0.0) for seq in (1, 2, 3))

    again = after_batch_failure(batch, now=1.0, draw=0.0, limits=LIMITS)

    assert [one.failures for one in again] == [0, 0, 0]


@pytest.mark.parametrize("kind", NO_PROOF)
def test_without_proof_there_are_no_words_for_an_obituary(kind):
    with pytest.raises(ValueError, match="no cause of death"):
        obituary(kind, None, "en")


@pytest.mark.parametrize(("locale", "alive"), [("en", "still online"), ("zh", "仍然在线")])
def test_the_notice_of_a_failing_message_says_that_the_persona_lives(locale, alive):
    assert alive in text(Notice.FAILING, locale, cause="crash", failures=3)
