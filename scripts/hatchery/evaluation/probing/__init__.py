"""Edge probing: read sentences with labelled spans of words, convert spans of words to spans of subwords, and cache the
hidden states of frozen encoders.
"""
