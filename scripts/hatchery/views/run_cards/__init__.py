"""Run cards: what one pretraining was, what it cost, how it went and where it ran."""
