"""The webhook: tells another program of flags, assignments and alarms.

Whoever decides, assigns or raises an alarm does nothing for it: the log and the notes have that
already, in the same transaction. One worker reads on from where it stopped, writes down what is to
be sent, and sends it until it has been received. Events of one case are sent in order. What fails
too often stays in the table, for somebody to look at.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from ._api import Seq
from ._chain import is_erased
from ._service import Call, Service
from ._status import QueueView
from .keys import NO_KEY
from .store import ALARM

_PATIENCE = 10.0  # seconds until a receiver must have answered
_TOGETHER = 50  # events that are sent before it is written down which of them were received
_MOST_TRIES = 13  # with pauses that double, from a second to more than an hour in all
_NOTES = 0  # stands for the notes among the queues whose logs were read
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PLACES = "SELECT queue, seq FROM hook_place"
# Of the events of a case that are not given up, only the first one is due.
_DUE = (
    "SELECT event.id, event.tries, event.type, event.at, event.body, queue.name, "
    "log.case_id, log.score, log.period, log.seal FROM hook_event AS event JOIN queue ON queue.id "
    "= event.queue LEFT JOIN log ON log.queue = event.queue AND log.seq = event.seq WHERE "
    "event.due <= ? AND NOT EXISTS (SELECT 1 FROM hook_event AS earlier WHERE earlier.queue = "
    "event.queue AND earlier.seq = event.seq AND earlier.number < event.number AND earlier.due IS "
    "NOT NULL) ORDER BY event.number LIMIT ?"
)


class Webhook:
    """Sends events to one address: every worker has a webhook, and the leader's works."""

    def __init__(self, service: Service, address: str, secret: str) -> None:
        self._service, self._address = service, address
        self._key = base64.b64decode(secret.removeprefix("whsec_"))
        self._alarms: set[tuple[int, str]] = set()

    async def run(self) -> None:
        """Send what is due, until nothing is; to be called again and again."""
        service = self._service
        while events := await service.ask(self._due):
            sent = [
                (id, tries, await service.loop.run_in_executor(None, self._send, id, content))
                for id, tries, content in events
            ]
            await service.ask(self._settle, sent)

    # --- what is to be sent --------------------------------------------------------------------

    def _due(self) -> list[tuple[str, int, bytes | None]]:
        """Return events to send: their id, failed tries and content."""
        if not self._service.roster.leads():
            return []
        self._note_alarms()
        self._gather()
        return [_content(*row) for row in self._service.store.query(_DUE, time.time(), _TOGETHER)]

    def _note_alarms(self) -> None:
        """Note alarms that only show when somebody looks at the numbers."""
        service, seen = self._service, set()
        for row in service.store.queues():
            view = QueueView(Call(service, row.name, "", NO_KEY, {}), row)
            for kind, message, at in view.alarms_of_numbers(view.queue()):
                seen.add((row.id, kind))
                if (row.id, kind) not in self._alarms:
                    said = {"kind": kind, "message": message}
                    service.store.note(at, "", ALARM, str(row.id), said)
        self._alarms = seen

    def _gather(self) -> None:
        """Write down what has happened since the last time; at the first time, nothing."""
        store = self._service.store
        # Notes are read first: whatever was assigned had been flagged before.
        [(last,)] = store.query("SELECT coalesce(max(number), 0) FROM note")
        ends = {_NOTES: int(last), **{row.id: row.last_seq for row in store.queues()}}
        places = dict(store.query(_PLACES))
        if places == ends:
            return
        found = list(self._happened(places, ends)) if places else []
        with store.write():
            if dict(store.query(_PLACES)) != places:
                return  # another worker was faster
            [(last,)] = store.query("SELECT coalesce(max(number), 0) FROM hook_event")
            for number, event in enumerate(found, last + 1):
                new = {"number": number, "id": secrets.token_hex(12), "due": time.time()}
                store.put("hook_event", {**new, **event})
            for queue, seq in ends.items():
                store.put("hook_place", {"queue": queue, "seq": seq}, ("queue",))

    def _happened(self, places: dict[int, int], ends: dict[int, int]) -> Iterator[dict[str, Any]]:
        """Yield the events between two places of the logs and the notes."""
        query = self._service.store.query
        for queue in ends.keys() - {_NOTES}:
            flags = "SELECT seq, at FROM log WHERE queue = ? AND seq > ? AND seq <= ? AND slot > 0"
            for seq, at in query(f"{flags} ORDER BY seq", queue, places.get(queue, 0), ends[queue]):
                yield {"type": "flag", "queue": queue, "seq": seq, "at": at, "body": "{}"}
        notes = "SELECT at, action, queue, detail FROM note WHERE number > ? AND number <= ?"
        for at, action, queue, detail in query(
            f"{notes} ORDER BY number", places[_NOTES], ends[_NOTES]
        ):
            if action == ALARM:
                yield {"type": ALARM, "queue": int(queue), "seq": 0, "at": at, "body": detail}
            elif action != "outcome":
                for key in json.loads(detail).get("claim", {}):
                    yield {"type": "assignment", "at": at, **self._held(*map(int, key.split("/")))}

    def _held(self, queue: int, seq: int) -> dict[str, Any]:
        """Return a case and who holds it now."""
        holder = "SELECT max(reviewer) FROM claim WHERE queue = ? AND seq = ?"  # or null
        [(reviewer,)] = self._service.store.query(holder, queue, seq)
        return {"queue": queue, "seq": seq, "body": json.dumps({"reviewer": reviewer})}

    # --- sending -------------------------------------------------------------------------------

    def _send(self, id: str, content: bytes | None) -> str | None:
        """Send an event; return what went wrong. Nobody is told of a case that was erased."""
        if content is None:
            return None
        now = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": now,
            "webhook-signature": signature(self._key, id, now, content),
        }
        request = urllib.request.Request(self._address, content, headers, method="POST")
        try:
            with _OPENER.open(request, timeout=_PATIENCE):
                return None
        except urllib.error.HTTPError as error:
            error.close()
            return f"status {error.code}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"[:200]

    def _settle(self, sent: list[tuple[str, int, str | None]]) -> None:
        """Forget what was received; put off what was not, or give it up.

        By ids: the number of an event that another worker has settled may be that of a new one.
        """
        store = self._service.store
        with store.write():
            for id, tries, error in sent:
                if error is None:
                    store.query("DELETE FROM hook_event WHERE id = ?", id)
                else:
                    due = time.time() + 2.0**tries if tries + 1 < _MOST_TRIES else None
                    change = "UPDATE hook_event SET tries = ?, due = ?, error = ? WHERE id = ?"
                    store.query(change, tries + 1, due, error, id)


def check_webhook(address: str | None, secret: str) -> tuple[str, str] | None:
    """Return both, unless what is sent could be read by others, or forged; None without address."""
    if address is None:
        return None
    parts = urlsplit(address)
    is_here = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not is_here and not (parts.scheme == "https" and parts.hostname):
        raise ValueError(
            f"The webhook needs an address with https://, or with http:// on this machine; got "
            f"{address!r}."
        )
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if len(key) < 24:
        raise ValueError(
            "The webhook signs what it sends. Set SHORTLIST_WEBHOOK_SECRET to at least 24 random "
            "bytes in base64, such as those of: openssl rand -base64 32. The receiver needs them, "
            "too."
        )
    return address, secret


def signature(key: bytes, id: str, timestamp: str, content: bytes) -> str:
    """Return the signature of an event, as receivers of standard webhooks check it."""
    signed = hmac.new(key, f"{id}.{timestamp}.".encode() + content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        """Follow nobody: what is sent is for one address."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def _content(
    id: str, tries: int, type: str, at: float, body: str, queue: str, *case: Any
) -> tuple[str, int, bytes | None]:
    """Return an event as it is sent; nothing in it says whether a case is a probe."""
    case_id, score, period, seal = case
    data = {"queue": queue, **json.loads(body)}
    if case_id is not None:
        data |= {"case": case_id, "score": score, "period": period}
    content = json.dumps({"type": type, "at": at, "data": data}).encode()
    return id, tries, None if is_erased(seal) else content


# --- routes ---------------------------------------------------------------------------------------


class Undelivered(Struct):
    """How many events wait, since when, and the latest that were given up."""

    waiting: int
    since: float | None
    given_up: list[dict[str, Any]]


class Again(Struct, forbid_unknown_fields=True):
    """Which events to send again."""

    numbers: Annotated[list[Seq], Meta(max_length=1_000)]


def list_undelivered(call: Call) -> Undelivered:
    """Events that the webhook has not delivered."""
    names = ("number", "type", "queue", "case", "at", "tries", "error")
    [(waiting, since)] = call.store.query("SELECT count(*), min(at) FROM hook_event WHERE due > 0")
    rows = call.store.query(
        "SELECT event.number, event.type, queue.name, log.case_id, event.at, event.tries, "
        "event.error FROM hook_event AS event JOIN queue ON queue.id = event.queue LEFT JOIN log "
        "ON log.queue = event.queue AND log.seq = event.seq WHERE event.due IS NULL ORDER BY "
        "event.number DESC LIMIT 1000"
    )
    return Undelivered(waiting, since, [dict(zip(names, row, strict=True)) for row in rows])


def send_again(call: Call, body: Again) -> Undelivered:
    """Send events again that were given up."""
    with call.store.write():
        for number in body.numbers:
            again = "UPDATE hook_event SET due = ?, tries = 0 WHERE number = ? AND due IS NULL"
            call.store.query(again, time.time(), number)
        call.note("webhook", {"again": body.numbers}, vouch=[])
    return list_undelivered(call)
