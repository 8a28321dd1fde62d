"""Teams and their keys: what holds where nothing is written."""

from tests.config.tables import load

TEAMS = f"""\
    version: 1
    vendors: {{v: {{}}}}
    models: {{v/m: {{}}}}
    teams:
      silent: {{keys: ["sha256:{"1" * 64}"], models: ["*"]}}
      told:
        keys: ["sha256:{"2" * 64}"]
        models: ["*"]
        on_unsupported: drop
        context_length_exceeded_behavior: truncate
        inference_extra_params: false
        inference_extra_headers: false
    """


def test_a_team_may_do_everything_unless_it_is_told_otherwise() -> None:
    teams = load(TEAMS).config.teams
    silent, told = teams["silent"], teams["told"]
    assert (silent.on_unsupported, silent.context_length_exceeded_behavior) == (None, None)
    assert (silent.inference_extra_params, silent.inference_extra_headers) == (True, True)
    assert (told.on_unsupported, told.context_length_exceeded_behavior) == ("drop", "truncate")
    assert (told.inference_extra_params, told.inference_extra_headers) == (False, False)
