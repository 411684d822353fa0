"""Spec 02 section 6: one resolver for every sender."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.mentions import BROADCAST_NAMES, resolve, strip_leading_mentions
from sentinel.core.model import Kind, Member, Resolution


def member(uid: str, name: str) -> Member:
    return Member(uid, name, Kind.PERSONA)


MEMBERS = [
    member("gode", "Gode"),
    member("mini", "GodeMini01"),
    member("god", "God"),
    member("ming", "小明"),
    member("mingming", "小明明"),
    member("annlee", "Ann Lee"),
    member("ann", "Ann"),
    member("alex1", "Alex"),
    member("alex2", "ALEX"),
    member("rene", "René"),
    member("strasse", "Straße"),
    member("cpp", "C++"),
    member("regex", "a.*b"),
    member("at", "b@b"),
    member("snake", "snake_case"),
    member("thai", "สมชาย"),
    member("robot", "Bot🤖"),
]

CALLS = [
    # plain prose
    ("@Gode", "gode"),
    ("hello @Gode, what broke?", "gode"),
    ("(@Gode)", "gode"),
    ('"@Gode"', "gode"),
    ("@Gode.", "gode"),
    ("@Gode!", "gode"),
    ("@Gode's idea", "gode"),
    ("@Gode’s idea", "gode"),
    ("@Gode-like", "gode"),
    ("@Gode/@Ann", "gode ann"),
    ("@Gode\n@Ann", "gode ann"),
    ("@Ann @Gode @Ann", "ann gode"),
    ("@Gode…", "gode"),
    ("@Gode👍", "gode"),
    ("👍@Gode", "gode"),
    ("1️⃣@Gode", "gode"),
    ("❤️@Gode", "gode"),
    ("@Bot🤖 hi", "robot"),
    ("@@Gode", "gode"),
    # case, normal forms, widths
    ("@gODE", "gode"),
    ("＠Gode", "gode"),
    ("@STRASSE", "strasse"),
    ("@RENÉ", "rene"),
    (unicodedata.normalize("NFD", "@René"), "rene"),
    ("@Rene", ""),
    # a name must end
    (
        "@Godel",
        "",
    ),
    ("@Gode1", ""),
    ("@Gode１", ""),
    ("@Godé", ""),
    ("@Gode\u0301", ""),
    ("@Gode\u0332", ""),
    ("@Godeя", ""),
    ("@Gode가", ""),
    ("@Gode_x", "gode"),
    ("@Gode\u200c l", "gode"),
    ("@Gode\u200dl", ""),
    ("@\u200bGode", ""),
    ("@Godete", ""),
    ("@ Gode", ""),
    ("@小明ok", ""),
    ("@C++11", ""),
    ("@C++, please", "cpp"),
    # longest first, and a match consumes its span
    ("@GodeMini01", "mini"),
    ("@GodeMini01x", ""),
    ("@GodeMini", ""),
    ("@Ann Lee", "annlee"),
    ("@Ann Leeds", "ann"),
    ("@Ann\nLee", "ann"),
    ("@Ann  Lee", "ann"),
    ("@b@b", "at"),
    ("@God@Gode", "god"),
    # scripts without word borders
    ("请@Gode看", "gode"),
    ("请＠Gode看一下", "gode"),
    ("@小明你好", "ming"),
    ("@小明明天来", "mingming"),
    ("@小明@小明明", "ming mingming"),
    ("@Godeさん", "gode"),
    ("@Godeサン", "gode"),
    ("@Godeครับ", "gode"),
    ("@สมชายครับ", "thai"),
    ("ครับ@Gode", "gode"),
    ("@Godeສະບາຍ", "gode"),
    ("@Godeជំរាប", "gode"),
    ("@Godeမင်္ဂလာ", "gode"),
    ("@小明、@Gode", "ming gode"),
    # the same before the @
    ("x@Gode", ""),
    ("1@Gode", ""),
    ("é@Gode", ""),
    ("e\u0301@Gode", ""),
    ("я@Gode", ""),
    ("가@Gode", ""),
    ("か\u3099@Gode", "gode"),
    ("_@Gode", "gode"),
    # addresses
    ("ann@gode.example", ""),
    ("mail ann.lee@gode.com now", ""),
    ("<ann@gode.com>", ""),
    ("https://x.example/@Gode", ""),
    ("<https://x.example/@Gode>", ""),
    ("www.example.com/@Gode", ""),
    ("https://x.example/*@Gode*", ""),
    ("https://x.example/_a_/@Gode", ""),
    ("https://x.example@Gode", ""),
    ("see example.com @Gode", "gode"),
    # code, quotes, HTML
    ("`@Gode`", ""),
    ("``@Gode ` @Gode``", ""),
    ("`unclosed @Gode", "gode"),
    ("```\n@Gode\n```", ""),
    ("~~~ @Gode\n@Gode\n~~~\n@Ann", "ann"),
    ("```\n@Gode never closed", ""),
    ("    @Gode", ""),
    ("- item\n\n      @Gode", ""),
    ("> @Gode", ""),
    ("> quote\n@Gode goes on lazily", ""),
    ("> quote\n\n@Gode", "gode"),
    ("> - > @Gode\n\n@Ann", "ann"),
    ("<div>\n@Gode\n</div>", ""),
    ("<!-- @Gode -->", ""),
    ('text <a title="@Gode"> text', ""),
    ("text <!-- @Gode --> @Ann", "ann"),
    ("text <b>@Gode</b>", "gode"),
    ("`x`@Gode", "gode"),
    ("@Gode`x`", "gode"),
    ("@`Gode`", ""),
    # links and images
    ("[x](/@Gode)", ""),
    ('[x](/y "@Gode")', ""),
    ("[@Gode](/x)", "gode"),
    ("[ask **@Gode** now](/x)", "gode"),
    ("[https://x.example/@Gode](/x)", ""),
    ("![@Gode](/x)", ""),
    ("[x]\n\n[x]: /@Gode '@Gode'", ""),
    ("[@Gode]\n\n[@Gode]: /x", "gode"),
    ("[@Gode]", "gode"),
    # emphasis is see-through
    ("**@Gode**", "gode"),
    ("_@Gode_", "gode"),
    ("*@Gode*, hi", "gode"),
    ("**@Go**de", "gode"),
    ("**@Gode**l", ""),
    ("@**Gode**", "gode"),
    ("*x*@Gode", ""),
    # blocks are prose
    ("# @Gode", "gode"),
    ("@Gode\n===", "gode"),
    ("- @Gode\n- @Ann", "gode ann"),
    ("1. @Gode", "gode"),
    ("| a |\n| - |\n| @Gode |", "gode"),
    ("~~@Gode~~", "gode"),
    # escapes and entities
    (r"\@Gode", ""),
    (r"\\@Gode", "gode"),
    (r"\＠Gode", ""),
    (r"@snake\_case", "snake"),
    ("@snake_case", "snake"),
    ("&#64;Gode", "gode"),
    ("&#x40;Gode", "gode"),
    ("&commat;Gode", "gode"),
    ("x&#64;Gode", ""),
    ("x\u200d@Gode", ""),
    ("<scheme:@Gode>", ""),
    ("`&#64;Gode`", ""),
    # a regular expression is only a name
    ("@a.\\*b", "regex"),
    ("@axxb", ""),
    # nobody
    ("", ""),
    ("@", ""),
    ("Gode", ""),
    ("@nobody", ""),
    ("@@@@", ""),
]


@pytest.mark.parametrize(("text", "expected"), CALLS)
def test_whom_a_text_calls(text, expected):
    assert resolve(text, MEMBERS) == Resolution(tuple(expected.split()))


@pytest.mark.parametrize("text", ["@Alex", "@alex please", "@ALEX @alex"])
def test_an_ambiguous_name_calls_nobody_and_is_reported_once(text):
    assert resolve(text, MEMBERS) == Resolution(ambiguous=("Alex",))


def test_an_ambiguous_longer_name_does_not_fall_back_to_a_shorter_one():
    members = [member("a", "Ann"), member("l1", "Ann Lee"), member("l2", "ann lee")]

    assert resolve("@Ann Lee", members) == Resolution(ambiguous=("Ann Lee",))


def test_a_match_consumes_its_span_with_any_at_in_it():
    members = [member("team", "Team @Ann"), member("ann", "Ann")]

    assert resolve("@Team @Ann", members) == Resolution(("team",))


def test_names_that_differ_only_in_normal_form_are_ambiguous():
    members = [member("a", "René"), member("b", unicodedata.normalize("NFD", "René"))]

    assert resolve("@René", members).mentions == ()
    assert len(resolve("@René", members).ambiguous) == 1


def test_one_member_listed_twice_is_not_ambiguous():
    assert resolve("@Gode", [member("g", "Gode"), member("g", "gode")]) == Resolution(("g",))


@pytest.mark.parametrize("word", [*BROADCAST_NAMES, "ALL", "Everyone"])
def test_broadcast_names_call_everybody(word):
    assert resolve(f"@{word}, look", MEMBERS) == Resolution(broadcast=True)


@pytest.mark.parametrize(
    "text",
    [
        "`@all`",
        "> @everyone",
        r"\@all",
        "@allison",
        "@all1",
        "x@all",
        "```\n@所有人\n```",
        "all",
        "https://x.example/@all",
    ],
)
def test_broadcast_keeps_the_rules_of_every_name(text):
    assert resolve(text, MEMBERS) == Resolution()


def test_broadcast_in_a_borderless_script():
    assert resolve("请@所有人看", MEMBERS).broadcast


def test_a_persona_without_the_setting_calls_nobody_by_broadcast():
    assert resolve("@all and @Gode", MEMBERS, may_broadcast=False) == Resolution(("gode",))


def test_a_member_with_a_broadcast_name_is_meant_instead():
    assert resolve("@All", [*MEMBERS, member("x", "all")]) == Resolution(("x",))


def test_a_longer_name_that_begins_with_a_broadcast_name_wins():
    assert resolve("@All Hands", [member("h", "All Hands")]) == Resolution(("h",))


@pytest.mark.parametrize("members", [[], [member("x", "")], [member("x", "  ")]])
def test_without_names_nobody_is_called(members):
    assert resolve("@ @Gode @  x", members) == Resolution()


def test_a_name_that_ends_in_a_mark_is_no_shorter_name():
    """Thai vowel signs stand behind their consonant: the name's last letter would be another one."""
    assert resolve("@กิ", [member("x", "ก")]) == Resolution()


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("@Gode /stop", "/stop"),
        ("  @Gode, /stop now\nmore", "/stop now\nmore"),
        ("@Gode：/stop", "/stop"),
        ("@Gode @小明 /stop", "/stop"),
        ("@小明/stop", "/stop"),
        ("@all /stop", "/stop"),
        ("＠Ann Lee\n/stop", "/stop"),
        ("/stop", "/stop"),
        ("@nobody /stop", "@nobody /stop"),
        ("@Godel /stop", "@Godel /stop"),
        ("hi @Gode /stop", "hi @Gode /stop"),
        ("@Gode", ""),
        ("", ""),
    ],
)
def test_leading_mentions_are_taken_off(text, rest):
    assert strip_leading_mentions(text, MEMBERS) == rest


MARKDOWNISH = st.text(
    st.sampled_from(list("@＠Gode Mini01小明`*_[]()<>!\\\n>-#&;:/.\u0301\u200d~x")), max_size=60
)
ANY_TEXT = st.one_of(st.text(max_size=80), MARKDOWNISH)


@given(ANY_TEXT)
def test_every_uid_is_a_members_and_stands_once(text):
    found = resolve(text, MEMBERS)

    assert set(found.mentions) <= {one.uid for one in MEMBERS}
    assert len(set(found.mentions)) == len(found.mentions)
    assert found == resolve(text, MEMBERS)


@given(ANY_TEXT)
def test_a_text_without_an_at_calls_nobody(text):
    plain = text.replace("@", "").replace("＠", "").replace("&", "")

    assert resolve(plain, MEMBERS) == Resolution()


@given(ANY_TEXT)
def test_a_code_fence_around_any_text_calls_nobody(text):
    line_ends = text.replace("\r", "\n")

    assert resolve(f"`````````\n{line_ends.replace('`' * 9, '')}\n`````````", MEMBERS) == Resolution()


@given(ANY_TEXT)
def test_inline_code_around_any_text_calls_nobody(text):
    inner = "".join(text.replace("`", "").split())

    assert resolve(f"see `a{inner}a` there", MEMBERS) == Resolution()


@given(ANY_TEXT)
def test_a_quote_around_any_text_calls_nobody(text):
    lines = text.replace("\r", "\n").split("\n")

    assert resolve("\n".join(f"> {line}" for line in lines), MEMBERS) == Resolution()


@given(
    st.text(
        alphabet=st.characters(categories=["Ll", "Lu", "Nd"], max_codepoint=0x24F), min_size=1, max_size=5
    )
)
def test_an_alphabetic_tail_never_calls_the_longer_or_the_shorter_name(tail):
    members = [member("gode", "Gode"), member("mini", "GodeMini01")]

    assert resolve(f"@GodeMini01{tail}", members) == Resolution()


@given(st.permutations(MEMBERS), MARKDOWNISH)
def test_the_order_of_members_does_not_matter(members, text):
    shuffled, sorted_ = resolve(text, members), resolve(text, MEMBERS)

    assert (shuffled.mentions, shuffled.broadcast) == (sorted_.mentions, sorted_.broadcast)


MANY = [member(f"u{number}", f"Member {number} Of Many") for number in range(500)]


@pytest.mark.parametrize(
    "unit",
    [
        "@",
        "@Gode ",
        "@Member 7 Of Many ",
        "a@",
        "@[",
        "> ",
        "*@a",
        "`@`` ",
        "a!://@",
        "http://a.b @",
        "<@a",
        "@\u0301\u200d",
    ],
)
def test_a_hostile_text_of_full_length_costs_little(unit):
    """Linear: a text ten times as long may take at most about ten times as long, with slack for a busy machine."""
    resolve("@x", MANY)

    started = time.process_time()
    resolve(("@x " + unit * 20_000)[:20_000], MANY)

    assert time.process_time() - started < 1.0


@settings(max_examples=20)
@given(st.integers(min_value=1, max_value=400))
def test_deep_nesting_ends(depth):
    assert resolve("> " * depth + "@Gode", MEMBERS) == Resolution()
    resolve("[" * depth + "@Gode" + "]" * depth, MEMBERS)
