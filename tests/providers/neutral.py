"""Neutral values by unified field, as clients send them by default. Fields without a neutral value are absent."""

from collections.abc import Mapping

NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1, 1.0),
    "best_of": (0, 1),
    "echo": (False,),
    "echo_last": (0,),
    "top_p": (1, 1.0),
    "top_k": (-1, 0),
    "min_p": (0, 0.0),
    "typical_p": (1,),
    "presence_penalty": (0, 0.0, -0.0),
    "frequency_penalty": (0,),
    "repetition_penalty": (1, 1.0),
    "ignore_eos": (False,),
    "include_stop_str_in_output": (False,),
    "suffix": ("",),
    "logit_bias": ({},),
    "stop": ((),),
    "tools": ([],),
    "images": ((), ((),), ((), ())),
    "metadata": ({},),
    "response_format": ({"type": "text"},),
    "tool_choice": ("none",),
    "verbosity": ("medium",),
    "parallel_tool_calls": (True,),
    "modalities": (["text"],),
    "raw_output": (False,),
    "return_token_ids": (False,),
    "perf_metrics_in_response": (False,),
}

EACH_NEUTRAL = [{name: value} for name, values in NEUTRAL.items() for value in values]
"""Each neutral value as the only field of a request."""
