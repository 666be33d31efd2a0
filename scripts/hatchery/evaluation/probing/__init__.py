"""Edge probing: reading sentences with labelled spans, spans of words as spans of subwords, frozen layers kept."""
