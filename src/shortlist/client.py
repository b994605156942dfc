"""Ask a decision service; ask again if there is no answer."""

from __future__ import annotations

import http.client
import json
import random
import time
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["Answer", "Client", "ServiceError"]

_AGAIN = {408, 429, 500, 502, 503, 504}
_PIECE = 1_000  # the longest list that the service sends at once


class ServiceError(Exception):
    """A service has refused a request, or has not answered.

    Attributes
    ----------
    status : int
        The HTTP status; 0 if there was no answer.
    kind : str
        The kind of the problem, such as "conflict".
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.kind = status, kind


class Answer(NamedTuple):
    """The answer to a case.

    Attributes
    ----------
    id : str
        The case.
    flag : bool
        Whether to follow it up.
    score : float
        Its score; higher is more suspicious.
    threshold : float or None
        What the score had to exceed; None if that was infinite.
    reason : str
        Why, in words.
    repeated : bool
        Whether the case had been decided before.
    at : float
        The moment at which it counts.
    model : int
        The version of the model.
    effort : float or None
        How much work the case takes, if the model weighs that.
    selected_by, inclusion : str, float or None
        With probes: how the case was selected, and with which probability.
    """

    id: str
    flag: bool
    score: float
    threshold: float | None
    reason: str
    repeated: bool
    at: float
    model: int
    effort: float | None = None
    selected_by: str | None = None
    inclusion: float | None = None


class Client:
    """Asks a decision service, and asks again: the id of a case is its key.

    A client has one connection and belongs to one thread.

    Parameters
    ----------
    address : str
        Such as ``"http://127.0.0.1:8000"``.
    key : str, default=None
        An API key.
    queue : str, default="default"
        The queue.
    timeout : float, default=10
        Seconds to wait for each answer.
    retries : int, default=8
        How often to ask again after a lost connection, or when the service is busy or away. The
        pauses grow, and follow Retry-After.

    Examples
    --------
    >>> from shortlist.client import Client
    >>> client = Client("http://127.0.0.1:8000", key="sl_...")
    >>> client.address
    'http://127.0.0.1:8000'
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        queue: str = "default",
        timeout: float = 10.0,
        retries: int = 8,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"address must be such as http://127.0.0.1:8000; got {address!r}.")
        self.address, self._parts = address.rstrip("/"), parts
        self._key, self._timeout, self._retries = key, timeout, retries
        self._root, self._base = parts.path.rstrip("/"), f"/v1/queues/{quote(queue, safe='')}"
        self._link: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def decide(self, case: dict[str, Any]) -> Answer:
        """Decide about one case.

        Parameters
        ----------
        case : dict
            Its id and its columns.

        Returns
        -------
        Answer
        """
        return _answer(self.ask("POST", "/decisions", case))

    def decide_many(self, cases: Iterable[dict[str, Any]]) -> list[Answer | ServiceError]:
        """Decide about up to 1,024 cases in one request.

        Parameters
        ----------
        cases : iterable of dict
            Cases.

        Returns
        -------
        list of Answer or ServiceError
            One for each case; an error for a case that does not fit, or that is known with other
            columns.
        """
        answers = self.ask("POST", "/decisions", list(cases))
        return [_problem(each["error"]) if "error" in each else _answer(each) for each in answers]

    def find(self, case: str) -> dict[str, Any]:
        """Return the decision about a case, and its outcomes."""
        return dict(self.ask("GET", f"/decisions/{quote(case, safe='')}"))

    def cases(
        self, view: str = "open", *, segment: str | None = None, reviewer: str | None = None
    ) -> list[dict[str, Any]]:
        """Return all cases of a view: "mine", "open", "closed", or those of this "period"."""
        asked = {"view": view, "segment": segment, "reviewer": reviewer, "limit": _PIECE}
        found: list[dict[str, Any]] = []
        while True:
            asked["before"] = found[-1]["id"] if found else None
            given = {name: value for name, value in asked.items() if value is not None}
            piece = self.ask("GET", f"/cases?{urlencode(given)}")["cases"]
            found += piece
            if len(piece) < _PIECE:
                return found

    def next(self, *, reviewer: str | None = None, seconds: float = 1_800) -> Any:
        """Claim the next case and return it; None if there is none."""
        body = {"reviewer": reviewer, "seconds": seconds}
        return self.ask("POST", "/next", body)["case"]

    def claim(
        self, case: str, *, reviewer: str | None = None, seconds: float = 1_800
    ) -> dict[str, Any]:
        """Claim a flagged case for some time; a key of a person needs no reviewer."""
        body = {"id": case, "reviewer": reviewer, "seconds": seconds}
        return dict(self.ask("POST", "/claims", body))

    def release(
        self, case: str, *, reviewer: str | None = None, decline: bool = False
    ) -> dict[str, Any]:
        """Give a case back, or decline it; return who holds it now.

        Without an answer nobody knows whether that has happened: this is an error.
        """
        body = {"id": case, "reviewer": reviewer, "decline": decline}
        return dict(self.ask("POST", "/releases", body, again=False))

    def tell(
        self,
        case: str,
        *,
        rare: bool | None,
        reviewer: str | None = None,
        note: str | None = None,
    ) -> int:
        """Tell the outcome of a case, None if nobody can tell; return its number."""
        body = {"id": case, "rare": rare, "reviewer": reviewer, "note": note}
        # Asked again after another reviewer's outcome, it must not count as a second one.
        key = {"Idempotency-Key": uuid.uuid4().hex}
        return int(self.ask("POST", "/outcomes", body, key)["number"])

    def assign(self) -> dict[str, Any]:
        """Assign all open cases that nobody holds to those who are there."""
        return dict(self.ask("POST", "/assignments"))

    def set_reviewer(self, name: str, minutes: float, **more: Any) -> None:
        """Add or change a reviewer; more are `segments`, `queues` and `absent_until`."""
        self.ask("PUT", f"/v1/reviewers/{quote(name, safe='')}", {"minutes": minutes, **more})

    def set_capacity(self, count: int | None = None, **more: Any) -> dict[str, Any]:
        """Change the capacity: so many flags, or so much `effort`; now, or when it `begins`.

        With `staff`, it is what those can do who are there, if each flag takes so many minutes.
        """
        body = {"count": count, "from": more.pop("begins", None), **more}
        return dict(self.ask("PUT", "/capacity", body))

    def observe(self, cases: Iterable[dict[str, Any]]) -> int:
        """Let the service learn from cases that are decided elsewhere; return how many.

        Without an answer nobody knows whether they have counted: this is an error, and they are
        not sent again.
        """
        self.close()  # a connection that was closed long ago would lose the request
        return int(self.ask("POST", "/observations", list(cases), again=False)["observed"])

    def status(self) -> dict[str, Any]:
        """Return the numbers of the queue."""
        return dict(self.ask("GET", "/status"))

    def log(self, *, after: int = 0, limit: int = 1_000) -> list[dict[str, Any]]:
        """Return entries of the log."""
        return list(self.ask("GET", f"/log?after={after}&limit={limit}")["entries"])

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        again: bool = True,
    ) -> Any:
        """Ask for anything else that the API offers; return the JSON of the answer.

        Parameters
        ----------
        method, path : str
            Such as "POST" and "/promote"; paths are those below the queue, unless they begin with
            "/v1/", such as "/v1/me".
        body : object, default=None
            What to send: bytes as a file, everything else as JSON.
        headers : dict, default=None
            More headers.
        again : bool, default=True
            Whether to ask again without an answer; not for what must not happen twice.

        Returns
        -------
        object
        """
        for attempt in range(self._retries + 1):
            after = "0"
            try:
                response, answer = self._send(method, path, body, headers or {})
            except (OSError, http.client.HTTPException) as error:
                self.close()
                detail = f"No answer: {error}.{'' if again else ' The request may have counted.'}"
                problem = ServiceError(0, "no-answer", detail)
                can_repeat = again or isinstance(error, ConnectionRefusedError)
            else:
                if response.status < 400:
                    return answer
                problem = _problem(answer, response.status)
                can_repeat = again and response.status in _AGAIN
                after = response.headers.get("Retry-After", "0")
            if not can_repeat:
                break
            if attempt < self._retries:
                pause = min(0.05 * 2**attempt, 2.0) * random.uniform(0.5, 1)
                time.sleep(max(pause, min(float(after), 5.0)))
        raise problem

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[Any, Any]:
        """Send a request; return the response, and its JSON or an empty object."""
        if self._link is None:
            secure = self._parts.scheme == "https"
            link = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            self._link = link(str(self._parts.hostname), self._parts.port, timeout=self._timeout)
        is_file = isinstance(body, bytes)
        content = body if is_file or body is None else json.dumps(body, allow_nan=False).encode()
        if content is not None:
            kind = "octet-stream" if is_file else "json"
            headers = {**headers, "Content-Type": f"application/{kind}"}
        if self._key is not None:
            headers = {**headers, "Authorization": f"Bearer {self._key}"}
        whole = path if path.startswith("/v1/") else self._base + path
        self._link.request(method, self._root + whole, content, headers)
        response = self._link.getresponse()
        raw = response.read()
        try:
            return response, json.loads(raw)
        except ValueError:
            return response, {}


def _answer(given: dict[str, Any]) -> Answer:
    """Return an answer, without what only newer services say."""
    return Answer(**{name: given[name] for name in Answer._fields if name in given})


def _problem(answer: Any, status: int = 0) -> ServiceError:
    told = answer if isinstance(answer, dict) else {}
    kind = str(told.get("type", "error")).rpartition(":")[2]
    return ServiceError(
        int(told.get("status", status)), kind, str(told.get("detail", f"Status {status}."))
    )
