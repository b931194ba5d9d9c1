"""Two worker processes of each engine answer as one process does. `./test` calls it."""

import logging
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet

import symdex

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# What the workers run.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])

import symdex_tables  # noqa: E402

ROWS = int(os.environ.get("SYMDEX_TEST_ROWS", "50000"))
STORE = os.environ.get("SYMDEX_TEST_STORE")
TESTDATA = HERE.parents[1] / "testdata"


def table(store: Path) -> pyarrow.Table:
    """Rows in random order, over all images of the store and one that it does not have."""
    images = []
    for path in sorted(store.rglob("*.symdex")):
        index = symdex.Index.open(path)
        images.append((index.id, max(index.metadata.image_size, 1)))
    assert len(images) > 0
    chance = random.Random(1)
    known = {id: size for id, size in images} | {"00" * 16: 100}
    ids = list(known)
    # The table has 10 % of distinct rows, as a profile has.
    rows = [(id, chance.randrange(known[id])) for id in (chance.choice(ids) for _ in range(max(ROWS // 10, 100)))]
    rows += [(None, 1), (ids[0], None), ("not an id", 1)]
    order = [chance.randrange(len(rows)) for _ in range(ROWS)]
    columns = pyarrow.table({
        "build_id": pyarrow.array([id for id, _ in rows], pyarrow.string()),
        "address": pyarrow.array([address for _, address in rows], pyarrow.int64()),
    }).take(order)
    return columns.append_column("row", pyarrow.array(range(ROWS), pyarrow.int64()))


def in_order(answered: pyarrow.Table) -> pyarrow.Table:
    """The columns of all engines, by row."""
    frames = pyarrow.list_(symdex_tables.FRAME)
    columns = answered.select(["row", "status", "frames"]).sort_by("row")
    schema = pyarrow.schema([("row", pyarrow.int64()), ("status", pyarrow.string()), ("frames", frames)])
    return columns.cast(schema)


def rows_of(parquet: Path) -> pyarrow.Table:
    return in_order(pyarrow.parquet.read_table(parquet))


def spark(parquet: Path, store: Path, folder: Path) -> dict[str, pyarrow.Table]:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local-cluster[2,1,2048]")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    try:
        rows = session.read.parquet(str(parquet)).repartitionByRange(8, "build_id", "address")
        symdex_tables.add_frames_spark(rows, str(store)).write.parquet(str(folder / "spark"))
        udf = symdex_tables.frames_udf(str(store))
        some = rows.where(rows["row"] < ROWS // 10)
        some.select("row", udf("build_id", "address").alias("answer")).select("row", "answer.*").write.parquet(
            str(folder / "udf")
        )
        workers = rows.mapInArrow(process_of, "pid bigint, executor string").distinct().collect()
        assert len({worker["executor"] for worker in workers}) == 2, workers
    finally:
        session.stop()
    return {"Spark": rows_of(folder / "spark"), "Spark's UDF": rows_of(folder / "udf")}


def process_of(parts: Any) -> Any:
    for _ in parts:
        pass
    executor = next((word for word in Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0") if word), "")
    yield pyarrow.RecordBatch.from_pydict({"pid": [os.getpid()], "executor": [f"{os.getcwd()} {executor}"]})


def on_ray(parquet: Path, store: Path) -> dict[str, pyarrow.Table]:
    import ray

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel("ERROR")
    try:
        dataset = ray.data.read_parquet(str(parquet)).repartition(8)
        answered = symdex_tables.add_frames_ray(dataset, str(store), workers=2)
        parts = [pyarrow.table(batch) for batch in answered.iter_batches(batch_format="pyarrow", batch_size=None)]
    finally:
        ray.shutdown()
    return {"Ray": in_order(pyarrow.concat_tables(parts))}


def polars(parquet: Path, store: Path) -> dict[str, pyarrow.Table]:
    import polars

    frame = polars.read_parquet(parquet)
    eager = symdex_tables.add_frames_polars(frame, str(store))
    lazy = symdex_tables.add_frames_polars(polars.scan_parquet(parquet), str(store)).collect()
    return {"Polars": in_order(eager.to_arrow()), "Polars, lazy": in_order(lazy.to_arrow())}


def main(folder: Path) -> None:
    store = Path(STORE) if STORE else folder / "store"
    if not STORE:
        symdex.build(TESTDATA / "demo", store=symdex.Store(store))
    parquet = folder / "rows.parquet"
    pyarrow.parquet.write_table(table(store), parquet)
    begun = time.monotonic()
    expected = in_order(symdex_tables.AddFrames(str(store))(pyarrow.parquet.read_table(parquet)))
    print(f"one process: {ROWS} rows in {time.monotonic() - begun:.1f} s")
    counts = expected["status"].value_counts().to_pylist()
    counts = {count["values"]: count["counts"] for count in counts}
    assert {"symbolicated", "missing_symbol", "missing"} <= set(counts), counts
    engines = {
        "pyspark": lambda: spark(parquet, store, folder),
        "ray": lambda: on_ray(parquet, store),
        "polars": lambda: polars(parquet, store),
    }
    for name in sys.argv[2:] or list(engines):
        begun = time.monotonic()
        for what, answered in engines[name]().items():
            same = expected.slice(0, len(answered)) if what == "Spark's UDF" else expected
            assert answered.equals(same), f"{what} has other rows"
            print(f"{what}: {len(answered)} rows are those of one process")
        print(f"{name}: {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
