"""What a status and its headers mean."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.errors import Rejected, RoomError, Unavailable
from sentinel.rooms.refusals import detail, refusal, retry_after_s

DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
LATER = "Thu, 01 Jan 2026 00:01:30 GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({}, 1.0),
        ({"retry-after": ""}, 1.0),
        ({"retry-after": "soon"}, 1.0),
        ({"retry-after": "-3"}, 1.0),
        ({"retry-after": "nan"}, 1.0),
        ({"retry-after": "inf"}, 1.0),
        ({"retry-after": "99999999"}, 3600.0),
        ({"retry-after": LATER, "date": DATE}, 90.0),
        ({"retry-after": DATE, "date": LATER}, 1.0),
        ({"retry-after": LATER}, 1.0),
        ({"retry-after": LATER, "date": "yesterday"}, 1.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:30", "date": DATE}, 1.0),
    ],
)
def test_retry_after(headers, expected):
    assert retry_after_s(headers) == expected


@given(st.text(), st.text())
def test_no_retry_after_breaks_it(asked, date):
    assert 0 <= retry_after_s({"retry-after": asked, "date": date}) <= 3600


@given(st.integers(100, 599), st.binary())
def test_every_status_but_success_has_an_error(status, body):
    found = refusal("GET /v1/me", status, {}, body)

    assert (found is None) == (200 <= status < 300)
    assert found is None or isinstance(found, RoomError)


@pytest.mark.parametrize("status", [408, 425, 301, 307, 500, 503])
def test_what_heals_by_waiting_or_by_the_operator_is_no_rejection(status):
    assert isinstance(refusal("POST x", status, {}, b""), Unavailable)


@pytest.mark.parametrize("status", [400, 402, 405, 410, 413, 418, 422, 451])
def test_what_does_not_heal_is_rejected(status):
    found = refusal("POST x", status, {}, b"")

    assert isinstance(found, Rejected)
    assert found.status == status


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"title": "No", "detail": "why"}', "why"),
        (b'{"title": "No"}', "No"),
        (b'{"detail": 7}', ""),
        (b'["detail"]', ""),
        (b"<html>", ""),
        (b"[" * 100_000, ""),
        (b"\xff", ""),
        (json.dumps({"detail": "a\nb\x1b[31m\u202e c"}).encode(), "a b [31m c"),
        (json.dumps({"detail": "x" * 900}).encode(), "x" * 300),
    ],
)
def test_detail_is_one_short_line(body, expected):
    assert detail(body) == expected
