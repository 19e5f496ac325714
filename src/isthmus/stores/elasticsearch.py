"""Elasticsearch 8.11 and later: ``elasticsearch://host:9200?collection=INDEX``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from isthmus._optional import require
from isthmus._types import Metric
from isthmus.spaces import Space
from isthmus.stores._elastic import MAX_ROWS, ElasticStore
from isthmus.stores._elastic_errors import Refused

__all__ = ["ElasticsearchStore"]

LEAST_CANDIDATES = 128
SIMILARITIES: Mapping[Metric, str] = MappingProxyType(
    {"cosine": "cosine", "dot": "max_inner_product", "l2": "l2_norm"}
)
SCRIPTS: Mapping[Metric, str] = MappingProxyType(
    {
        "cosine": "(1.0 + cosineSimilarity(params.query, params.field)) / 2.0",
        "dot": "double d = dotProduct(params.query, params.field); "
        "return d < 0 ? 1.0 / (1.0 - d) : d + 1.0;",
        "l2": "double d = l2norm(params.query, params.field); return 1.0 / (1.0 + d * d);",
    }
)


class ElasticsearchStore(ElasticStore):
    """An index of Elasticsearch, with its vectors in a ``dense_vector``."""

    scheme: ClassVar[str] = "elasticsearch"

    def _connect(self) -> None:
        self._check_options()
        client = require("elasticsearch", extra="elasticsearch").Elasticsearch
        secret, user = self._secret, self._url.user
        more: dict[str, Any] = {}
        if user:
            more["basic_auth"] = (user, secret or "")
        elif secret:
            more["api_key"] = secret
        if ca := self._url.options.get("ca"):
            more["ca_certs"] = ca
        self._client = client(
            self._address(),
            request_timeout=self.timeout,
            max_retries=0,
            retry_on_timeout=False,
            **more,
        )

    def _send(self, method: str, path: str, *, body: Any, query: Mapping[str, str]) -> Any:
        errors = require("elasticsearch", extra="elasticsearch")
        kind = "x-ndjson" if isinstance(body, list) else "json"
        headers = {"accept": "application/json", "content-type": f"application/{kind}"}
        try:
            answer = self._client.perform_request(
                method, path, params=query, headers=headers, body=body
            )
        except errors.ApiError as error:
            raise Refused.of(error.meta.status, error.body) from None
        return answer.body

    def _vector_field(self, space: Space) -> dict[str, Any]:
        field: dict[str, Any] = {"type": "dense_vector", "dims": space.dim, "index": self._hnsw}
        if self._hnsw:
            field["similarity"] = SIMILARITIES[space.metric]
            field["index_options"] = {"type": "hnsw", "m": 16, "ef_construction": 100}
        return field

    def _metric_of(self, field: Mapping[str, Any]) -> Metric | None:
        if not field.get("index", True):
            return None
        similarity = field.get("similarity", "cosine")
        metrics: dict[str, Metric] = {theirs: ours for ours, theirs in SIMILARITIES.items()}
        return metrics.get(similarity, "cosine")  # dot_product is for vectors of length 1

    def _script(self, query: list[float]) -> dict[str, Any]:
        return {
            "source": SCRIPTS[self.space.metric],
            "lang": "painless",
            "params": {"query": query, "field": self._fields.vector},
        }

    def _nearest(self, query: list[float], k: int, clauses: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "knn": {
                "field": self._fields.vector,
                "query_vector": query,
                "k": k,
                "num_candidates": min(max(2 * k, LEAST_CANDIDATES), MAX_ROWS),
                "filter": clauses,
            }
        }

    def _fetched(self, *, vectors: bool) -> dict[str, Any]:
        # Since 9.2 vectors are left out of the source unless they are asked for as fields.
        left_out = [*self._fields.left_out, self._fields.vector]
        fetched: dict[str, Any] = {"_source": {"excludes": left_out}}
        if vectors:
            fetched["fields"] = [self._fields.vector]
        return fetched

    def _vector_of(self, hit: Mapping[str, Any]) -> Sequence[float]:
        found: Sequence[float] = hit["fields"][self._fields.vector]
        return found
