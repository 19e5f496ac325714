"""OpenSearch 2.x and later: ``opensearch://host:9200?collection=INDEX``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from isthmus._optional import require
from isthmus._types import Metric
from isthmus.spaces import Space
from isthmus.stores._elastic import ElasticStore
from isthmus.stores._elastic_errors import Refused

__all__ = ["OpensearchStore"]

SPACES: Mapping[Metric, str] = MappingProxyType(
    {"cosine": "cosinesimil", "dot": "innerproduct", "l2": "l2"}
)


class OpensearchStore(ElasticStore):
    """An index of OpenSearch, with its vectors in a ``knn_vector``."""

    scheme: ClassVar[str] = "opensearch"

    def _connect(self) -> None:
        self._check_options()
        client = require("opensearchpy", extra="opensearch").OpenSearch
        secret, user = self._secret, self._url.user
        more: dict[str, Any] = {}
        if user:
            more["http_auth"] = (user, secret or "")
        elif secret:
            more["headers"] = {"Authorization": f"Bearer {secret}"}
        if ca := self._url.options.get("ca"):
            more["ca_certs"] = ca
        self._client = client(
            self._address(), timeout=self.timeout, max_retries=0, retry_on_timeout=False, **more
        )

    def _send(self, method: str, path: str, *, body: Any, query: Mapping[str, str]) -> Any:
        errors = require("opensearchpy", extra="opensearch").exceptions
        headers = {}
        if isinstance(body, list):  # the client writes objects, and takes lines as they are
            lines = [one if isinstance(one, str) else json.dumps(one) for one in body]
            body = "\n".join(lines) + "\n"
            headers["content-type"] = "application/x-ndjson"
        try:
            return self._client.transport.perform_request(
                method, path, params=dict(query), body=body, headers=headers
            )
        except errors.TransportError as error:
            if not isinstance(error.status_code, int):
                raise  # no answer at all
            raise Refused.of(error.status_code, error.info) from None

    def _settings(self) -> dict[str, Any]:
        return {"settings": {"index": {"knn": True}}} if self._hnsw else {}

    def _vector_field(self, space: Space) -> dict[str, Any]:
        field: dict[str, Any] = {"type": "knn_vector", "dimension": space.dim}
        if self._hnsw:
            field["method"] = {
                "name": "hnsw",
                "engine": "lucene",
                "space_type": SPACES[space.metric],
                "parameters": {"m": 16, "ef_construction": 100},
            }
        return field

    def _metric_of(self, field: Mapping[str, Any]) -> Metric | None:
        named = field.get("method", {}).get("space_type") or field.get("space_type")
        metrics: dict[str, Metric] = {theirs: ours for ours, theirs in SPACES.items()}
        return metrics.get(named) if named else None

    def _script(self, query: list[float]) -> dict[str, Any]:
        params = {"field": self._fields.vector, "query_value": query}
        metric = self.space.metric
        if metric == "cosine":  # the score of the plain script has differed between versions
            source = "(1.0 + cosineSimilarity(params.query_value, doc[params.field])) / 2.0"
            return {"source": source, "lang": "painless", "params": params}
        params["space_type"] = SPACES[metric]
        return {"source": "knn_score", "lang": "knn", "params": params}

    def _nearest(self, query: list[float], k: int, clauses: list[dict[str, Any]]) -> dict[str, Any]:
        near = {"vector": query, "k": k, "filter": {"bool": {"filter": clauses}}}
        return {"query": {"knn": {self._fields.vector: near}}}

    def _fetched(self, *, vectors: bool) -> dict[str, Any]:
        left_out = self._fields.left_out + ([] if vectors else [self._fields.vector])
        return {"_source": {"excludes": left_out}}

    def _vector_of(self, hit: Mapping[str, Any]) -> Sequence[float]:
        found: Sequence[float] = hit["_source"][self._fields.vector]
        return found
