"""One segment for every sentence: the overlapping windows of the models trained on the British National Corpus.

Source: LTG-BERT section 3.1 (`training/mlm_dataset.py`). A segment is found from its number when it is read, so that
the index holds one number per document and nothing per sentence.
"""

import numpy as np

from hatchery.objectives.segments import DocumentCollection, Segment, index_of, room_for_tokens


class BncSegments:
    """Segment k starts at sentence k of the split; there are as many segments as sentences.

    Following sentences of the same document are appended while the segment is shorter than `sequence_length` - 3.
    Nothing is cut here: a segment may be far longer than a sequence, and the last sentences of a document are short
    segments. Raises TrainingError when `sequence_length` is below 4.
    """

    def __init__(self, documents: DocumentCollection, sequence_length: int) -> None:
        self._full_from = room_for_tokens(sequence_length) - 1
        self._documents = documents
        counts = (len(documents.document(index).sentence_starts) for index in range(documents.n_documents))
        self._sentences_until = np.cumsum(np.fromiter(counts, dtype=np.int64, count=documents.n_documents))

    def __len__(self) -> int:
        return int(self._sentences_until[-1]) if len(self._sentences_until) else 0

    def __getitem__(self, index: int) -> Segment:
        number = index_of(self._sentences_until, index, "right")
        document = self._documents.document(number)
        sentences = document.sentence_starts
        sentence = index - self._sentences_until.item(number) + len(sentences)
        start = sentences.item(sentence)
        # A segment ends where a sentence ends: at the first one that makes it long enough, or with the document.
        following = index_of(sentences, start + self._full_from, "left")
        end = sentences.item(following) if following < len(sentences) else len(document.ids)
        return Segment(number, document, start, end)
