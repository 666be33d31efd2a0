"""Signals are collected during training, and only then."""

import os
import signal

import pytest

from hatchery.pretraining.interruption import stop_request


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_noted_the_second_would_end_the_process_and_the_old_handler_comes_back(
    number: signal.Signals,
) -> None:
    former = signal.getsignal(number)
    with stop_request() as request:
        assert not request.is_made
        os.kill(os.getpid(), number)
        assert request.is_made and request.signal_name == number.name
        assert signal.getsignal(number) == signal.SIG_DFL
    assert signal.getsignal(number) == former
