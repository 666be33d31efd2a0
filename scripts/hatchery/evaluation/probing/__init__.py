"""Edge probing: read sentences with labelled spans, map word spans to subwords, and cache the states of frozen
encoders."""
