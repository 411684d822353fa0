"""What each captured run must be judged as. Written from the executors' documented outcomes, not from our own output.

`ok` stands for an answer; everything else is the word of a failure class. `ENDED_BY` names the runs that were ended from
outside because they hung: in the sentinel that is one of its own limits.
"""

CODEX = """
ok: approval_flag_before_exec codex_home_under_tmp concurrent_resume_A ephemeral first_turn_fresh_home git_repo_no_skip_flag
ok: home_unset huge item_file_change item_web_search model_in_bundled_catalog model_known_name output_last_message output_schema
ok: prompt_130k_argv prompt_300k_stdin prompt_after_double_dash prompt_argv_plus_stdin prompt_stdin_no_dash reasoning
ok: recover_429_then_text recover_500x2_then_text recover_cut_then_text recover_failed_rate_then_text resume_0_first
ok: resume_1_flags_before_subcommand resume_2_flags_after_subcommand resume_3_prompt_argv resume_4_flags_last
ok: resume_7_sandbox_by_c resume_8_other_cwd resume_9_other_C resume_after_sigkill resume_last resume_rollout_truncated_tail
ok: sandbox_bypass_flag sandbox_danger sandbox_default_no_flag sandbox_env_policy_core sandbox_nonroot sandbox_nonroot_no_userns
ok: sandbox_read_only sandbox_read_only_network_true sandbox_workspace_write sandbox_workspace_write_add_dir fork
ok: sandbox_workspace_write_network sandbox_workspace_write_no_tmp text tool_background_children tool_echo_danger tool_exit_3
ok: tool_model_in_bundled_catalog tool_output_300k two_messages unicode unknown_config_key
empty: empty no_output output_last_message_no_output
auth: http_401 http_401_no_retries api_key_env_missing builtin_provider_http_401
config: http_403 http_404 bad_config_value codex_home_missing unknown_config_key_strict unknown_provider
input_rejected: http_400 output_last_message_failed shim_exit_code_passthrough prompt_1500k_stdin
rate: http_429 failed_rate
quota: http_429_quota http_429_usage_limit failed_quota
unavailable: http_500 http_500_no_retries http_503 http_529 failed_overloaded failed_other cut cut_empty garbage refuse
unavailable: connection_refused connection_refused_bounded connection_refused_bounded_no_retries dns_failure hang_stream_idle_3s
context_full: failed_context
truncated: incomplete
timeout: hang_headers_idle_3s hang_headers_sigint prompt_argv_stdin_left_open
thread_lost: resume_bad_name resume_bad_uuid resume_ephemeral_thread resume_rollout_deleted resume_rollout_garbage
busy: concurrent_resume_B
missing: binary_missing spawn_cwd_missing prompt_300k_argv cd_missing
bug: approval_flag_rejected prompt_leading_dash resume_5_sandbox_flag_after_subcommand resume_6_cd_flag_after_subcommand
bug: unknown_flag prompt_empty_stdin prompt_not_utf8 not_git_repo
crash: no_json_plain_output connection_refused_sigint catalog_model_sigint_during_tool catalog_model_sigterm_during_tool
crash: sandboxed_sigint_during_tool sandboxed_sigkill_during_tool sandboxed_sigterm_during_tool shim_sigint_during_tool
crash: shim_sigkill_during_stream shim_sigterm_during_tool sighup_during_stream sigint_during_stream sigint_during_tool
crash: sigkill_during_stream sigkill_during_tool sigkill_group_during_tool sigterm_during_stream sigterm_during_tool
crash: sigterm_group_during_tool
"""

CODEX_0_147 = """
ok: resume text tool two_messages
empty: empty no_output
auth: http_401
rate: http_429_quota
quota: http_429_usage_limit
unavailable: connection_refused cut http_500
truncated: incomplete
thread_lost: resume_bad_name resume_bad_uuid
crash: sigterm_during_tool
"""

CLAUDE = """
ok: bad_model bare concurrent_resume_A concurrent_resume_B continue_last cut_then_nonstreaming_fallback_text
ok: first_turn_fresh_config home_unset huge no_session_persistence partial_messages prompt_300k_stdin prompt_argv
ok: prompt_argv_plus_stdin prompt_argv_stdin_left_open prompt_leading_dash prompt_not_utf8 prompt_slash_command prompt_slash_init
ok: prompt_slash_unknown recover_429_then_text recover_500x2_then_text recover_529_then_text recover_cut_then_text
ok: recover_stream_error_then_text resume_after_sigkill resume_by_id resume_ledger_truncated_tail resume_other_cwd
ok: session_id_again_after_early_kill session_id_new stream_error_then_nonstreaming_fallback_text text thinking
ok: tool_background_children tool_echo_default tool_output_300k tool_restricted tool_touch_acceptEdits tool_touch_allowed_tools
ok: tool_touch_auto tool_touch_bypass_root_IS_SANDBOX tool_touch_default_denied tool_touch_dontAsk tool_touch_manual
ok: tool_touch_permission_prompts_none tool_touch_plan tools_empty two_blocks unicode v2_1_197_text write_acceptEdits write_auto
ok: write_dontAsk write_manual write_outside_cwd_acceptEdits write_plan
empty: empty no_output prompt_slash_compact
auth: http_401 http_401_max_retries_1 http_403 no_api_key
config: http_404 tool_touch_bypassPermissions write_bypassPermissions
input_rejected: http_400
quota: http_400_credit
context_full: http_400_too_long http_413
rate: http_429 http_429_long_max_retries_1 http_429_max_retries_1 http_429_usage_limit http_429_usage_limit_max_retries_1
unavailable: http_500 http_500_max_retries_0 http_500_max_retries_1 http_503 http_529 http_529_max_retries_1 refuse
unavailable: refuse_max_retries_1 connection_refused_max_retries_1 cut cut_empty stream_error garbage
truncated: max_tokens max_turns_1 max_budget
refused: refusal
timeout: hang_headers_api_timeout_5s hang_stream_api_timeout_5s hang_headers_sigterm
thread_lost: resume_after_early_kill resume_ledger_garbage resume_missing_uuid resume_not_uuid resume_unpersisted session_id_reused
thread_lost: resume_fork prompt_slash_clear
missing: binary_missing spawn_cwd_missing prompt_300k_argv
bug: bad_permission_mode prompt_empty_stdin resume_with_session_id session_id_not_uuid stream_json_without_verbose unknown_flag
bug: output_json prompt_slash_context prompt_slash_context_disabled prompt_slash_model prompt_slash_usage
crash: kill_before_request output_text resume_no_value sigint_during_stream sigint_during_tool sigkill_during_stream
crash: sigkill_during_tool sigkill_group_during_tool sigterm_during_stream sigterm_during_tool sigterm_group_during_tool
"""

HUNG = {
    "connection_refused",
    "dns_failure",
    "hang_headers_idle_3s",
    "hang_headers_sigint",
    "hang_headers_sigterm",
    "hang_stream_api_timeout_5s",
    "prompt_argv_stdin_left_open",
}


def table(text):
    """Return {case: class word} of one of the texts above."""
    rows = [line.split(": ") for line in text.strip().splitlines()]
    return {name: kind for kind, names in rows for name in names.split()}


EXPECTED = {"codex": table(CODEX), "codex-0.147.0": table(CODEX_0_147), "claude": table(CLAUDE)}
