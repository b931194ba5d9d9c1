"""Adds functions, files and lines to tables of build ids and addresses, in Spark, Ray Data and Polars.

Every worker opens the store once and keeps the indexes that its rows need. See README.md.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pyarrow
import pyarrow.compute

import symdex

FRAME = pyarrow.struct([("function", pyarrow.string()), ("file", pyarrow.string()), ("line", pyarrow.uint32())])
COLUMNS = pyarrow.schema([("status", pyarrow.string()), ("frames", pyarrow.list_(FRAME))])
# Spark has no unsigned numbers.
SPARK_COLUMNS = "status: string, frames: array<struct<function: string, file: string, line: bigint>>"

# Pairs of digits, and dashes. An id has at most 32 bytes.
_ID = r"^(h-)?(-*[0-9a-fA-F]-*[0-9a-fA-F]){1,32}-*$"


@lru_cache(maxsize=4)
def _symbolicator(stores: tuple[str, ...], options: tuple[tuple[str, Any], ...]) -> symdex.Symbolicator:
    """The symbolicator of this process, which keeps the indexes that it has opened."""
    return symdex.Symbolicator(stores=list(stores), **dict(options))


class AddFrames:
    """Adds the columns ``status`` and ``frames`` to tables of Arrow.

    ``stores`` is the URL of a store of indexes, or a list of them. ``id`` and ``address`` are the columns with the build
    ids and with the offsets from the start of the image. ``lines`` is as in ``symdex.Index.lookup``; ``timeout``,
    ``cache`` and ``cache_size`` are those of ``symdex.Store``. The object can be sent to other processes.
    """

    def __init__(
        self,
        stores: str | list[str],
        *,
        id: str = "build_id",
        address: str = "address",
        lines: str = "statement",
        **options: Any,
    ) -> None:
        self._stores = (stores,) if isinstance(stores, str) else tuple(stores)
        self._id, self._address, self._lines = id, address, lines
        self._options = tuple(sorted(options.items()))

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """``table`` with the two columns. Its rows stay in their order."""
        status, frames = self.columns(table.column(self._id), table.column(self._address))
        return table.append_column("status", status).append_column("frames", frames)

    def columns(self, ids: Any, addresses: Any) -> tuple[pyarrow.ChunkedArray, pyarrow.ChunkedArray]:
        """The status and the frames for each id and address. Rows without a usable id or address are ``missing``."""
        compute = pyarrow.compute
        ids = compute.fill_null(compute.cast(ids, pyarrow.string()), "")
        is_address = compute.fill_null(compute.greater_equal(addresses, 0), False)
        is_asked = compute.and_(compute.match_substring_regex(ids, _ID), is_address)
        symbolicator = _symbolicator(self._stores, self._options)
        asked = (compute.filter(ids, is_asked), compute.filter(addresses, is_asked))
        answers = symbolicator.resolve(*asked, lines=self._lines)
        unavailable = compute.equal(answers["status"].cast(pyarrow.string()), "unavailable")
        if compute.any(unavailable).as_py():
            # The engine tries the task again.
            reason = compute.filter(answers["reason"], unavailable)[0].as_py()
            raise symdex.UnavailableError(f"a store cannot be asked: {reason}")
        status = answers["status"].cast(pyarrow.string())
        chunks = [_frames(chunk) for chunk in answers["frames"].chunks]
        frames = pyarrow.chunked_array(chunks, COLUMNS.field("frames").type)
        if len(answers) == len(is_asked):
            return status, frames
        # The row of each answer; null without one.
        rows = compute.subtract(compute.cumulative_sum(is_asked.cast(pyarrow.int64())), 1)
        rows = compute.if_else(is_asked, rows, pyarrow.scalar(None, pyarrow.int64()))
        empty = pyarrow.scalar([], frames.type)
        return compute.fill_null(status.take(rows), "missing"), compute.coalesce(frames.take(rows), empty)


def _frames(frames: pyarrow.ListArray) -> pyarrow.ListArray:
    """The frames with plain strings, which every engine reads."""
    rows = frames.values
    fields = [rows.field(name) for name in ("function", "file", "line")]
    fields = [field.dictionary_decode() if pyarrow.types.is_dictionary(field.type) else field for field in fields]
    return pyarrow.ListArray.from_arrays(frames.offsets, pyarrow.StructArray.from_arrays(fields, fields=list(FRAME)))


def add_frames_spark(dataframe: Any, stores: str | list[str], **options: Any) -> Any:
    """The DataFrame of Spark with the two columns. ``options`` are those of :class:`AddFrames`.

    The rows of each partition are sorted by id and address, so that its worker reads each index once.
    """
    from pyspark.sql.types import StructType

    add = AddFrames(stores, **options)

    def batches(parts: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for part in parts:
            if part.num_rows:
                yield from _for_spark(add(pyarrow.Table.from_batches([part]))).to_batches()

    order = [options.get("id", "build_id"), options.get("address", "address")]
    schema = StructType.fromDDL(SPARK_COLUMNS)
    schema = StructType(dataframe.schema.fields + schema.fields)
    return dataframe.sortWithinPartitions(*order).mapInArrow(batches, schema)


def frames_udf(stores: str | list[str], **options: Any) -> Any:
    """A pandas UDF of Spark with the arguments build id and address, which returns the two columns as a struct."""
    import pandas
    from pyspark.sql.functions import pandas_udf

    add = AddFrames(stores, **options)

    @pandas_udf(f"struct<{SPARK_COLUMNS}>")  # type: ignore[call-overload]
    def frames(parts: Iterator[tuple[pandas.Series, pandas.Series]]) -> Iterator[pandas.DataFrame]:
        for ids, addresses in parts:
            ids = pyarrow.array(ids, pyarrow.string(), from_pandas=True)
            addresses = pyarrow.array(addresses, pyarrow.int64(), from_pandas=True)
            status, rows = add.columns(pyarrow.chunked_array([ids]), pyarrow.chunked_array([addresses]))
            yield pandas.DataFrame({"status": status.to_pandas(), "frames": rows.to_pylist()})

    return frames


def _for_spark(table: pyarrow.Table) -> pyarrow.Table:
    frame = pyarrow.struct([(field.name, pyarrow.int64() if field.name == "line" else field.type) for field in FRAME])
    at = table.schema.get_field_index("frames")
    return table.set_column(at, "frames", table.column(at).cast(pyarrow.list_(frame)))


def add_frames_ray(dataset: Any, stores: str | list[str], *, workers: Any = None, **options: Any) -> Any:
    """The dataset of Ray with the two columns. ``workers`` is the number of processes, or a range of it."""
    arguments = {"stores": stores, **options}
    return dataset.map_batches(AddFrames, batch_format="pyarrow", fn_constructor_kwargs=arguments, concurrency=workers)


def add_frames_polars(frame: Any, stores: str | list[str], **options: Any) -> Any:
    """The DataFrame or the LazyFrame of Polars with the two columns."""
    import polars

    add = AddFrames(stores, **options)

    def with_frames(part: Any) -> Any:
        return polars.from_arrow(add(part.to_arrow(compat_level=polars.CompatLevel.oldest())))

    if isinstance(frame, polars.LazyFrame):
        dtype = polars.from_arrow(COLUMNS.empty_table()).schema
        schema = {**frame.collect_schema(), **dtype}
        return frame.map_batches(with_frames, schema=schema, streamable=True)
    return with_frames(frame)
