"""Places in a topic of Pulsar: which entry, which message in it, and both as one number.

Pulsar keeps a partition as a row of ledgers, each a row of entries; an entry holds one message, or a batch of them.
"""

from typing import Final, NamedTuple

from controller.model.errors import TrimtabError

_BATCH_BITS: Final = 8
_ENTRY_BITS: Final = 22
_LEDGER_BITS: Final = 33
_LAST_IN_BATCH: Final = (1 << _BATCH_BITS) - 1


class Entry(NamedTuple):
    """An entry of a partition.  Entries compare in the order in which they were written."""

    ledger: int
    #: -1 is before the first entry of the ledger.
    entry: int

    @property
    def next(self) -> "Entry":
        """The place after it, in the same ledger."""
        return Entry(self.ledger, self.entry + 1)

    def __str__(self) -> str:
        """As Pulsar's own tools write it."""
        return f"{self.ledger}:{self.entry}"


#: Before the first entry of every partition.
BEGINNING: Final = Entry(-1, -1)


def number_of(ledger: int, entry: int, batch: int) -> int:
    """A message's place as one number of 63 bits: it grows in the order in which a partition's messages were written.

    *batch* is the message's index in its entry, -1 for one that is alone in it.  Messages of a batch from the index 255
    on share a number.  TrimtabError where the number would not fit.
    """
    if not 0 <= ledger < 1 << _LEDGER_BITS or not 0 <= entry < 1 << _ENTRY_BITS:
        raise TrimtabError(
            f"the message {ledger}:{entry} of Pulsar has no position: trimtab supports ledgers below "
            f"2^{_LEDGER_BITS} and"
            f" entries below 2^{_ENTRY_BITS}; limit the entries of a ledger in broker.conf: "
            f"managedLedgerMaxEntriesPerLedger, managedLedgerMinLedgerRolloverTimeMinutes"
        )
    return in_batch((ledger << _ENTRY_BITS | entry) << _BATCH_BITS, batch)


def in_batch(first: int, batch: int) -> int:
    """The number of the message with the index *batch* in the entry whose *first* message has that number."""
    return first | (0 if batch < 0 else batch if batch < _LAST_IN_BATCH else _LAST_IN_BATCH)


def is_shared(number: int) -> bool:
    """Whether several messages may have this *number*."""
    return number & _LAST_IN_BATCH == _LAST_IN_BATCH


def entry_of(number: int) -> Entry:
    """The entry that holds the message with this *number*."""
    whole = number >> _BATCH_BITS
    return Entry(whole >> _ENTRY_BITS, whole & ((1 << _ENTRY_BITS) - 1))


def before(place: Entry) -> Entry:
    """The place right before *place*, an entry."""
    return Entry(place.ledger, place.entry - 1)
