"""One segment for every document, cut at the end: the padded sequences of the reduced-vocabulary study.

Source: reduced-vocabulary section 2.4 and 5.1, whose corpora are already grouped into documents of about one sequence;
what does not fit is left out. The index holds one int32 number per document.
"""

import numpy as np

from hatchery.objectives.segments import DocumentCollection, Segment, room_for_tokens


class DocumentSegments:
    """The first `sequence_length` - 2 tokens of every document that has any.

    Raises TrainingError when `sequence_length` is below 4.
    """

    def __init__(self, documents: DocumentCollection, sequence_length: int) -> None:
        self._limit = room_for_tokens(sequence_length)
        self._documents = documents
        self._numbers = np.flatnonzero(documents.document_lengths()).astype(np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Segment:
        number = self._numbers.item(index)
        document = self._documents.document(number)
        return Segment(number, document, 0, min(len(document.ids), self._limit))
