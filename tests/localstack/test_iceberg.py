"""The plan function keeps Iceberg tables over the blocks of all tenants, which pyiceberg reads from the bucket."""

import json
import re
import secrets
from collections import Counter
from pathlib import Path

from botocore.validate import validate_parameters
from stack.running import KEYS, Stack
from support.documentation import block, run_shell
from support.iceberg import by_pyiceberg
from support.programs import wait_until
from support.remote_write import series
from support.stores import Store

START = 1_760_000_400_000
SECONDS = 300.0
# Prints what Glue would get. It has no table yet, so an update fails.
NO_TABLES = """
aws() {
    case "$1 $2" in
        "s3 cp") echo 1 ;;
        "glue create-table") echo "DatabaseName $4 TableInput ${@: -1};" ;;
        *) return 1 ;;
    esac
}
"""


def test_tables(quiet: Stack) -> None:
    """What the documentation registers in Glue is valid for the SDK, and names metadata that has the samples."""
    tenant = f"lake-{secrets.token_hex(4)}"
    bucket, region = quiet.description["outputs"]["BucketName"], quiet.description["region"]
    points = [(START + n * 15_000, n / 8) for n in range(20)]
    door = quiet.doors(tenant)["gateway"]
    assert door.write([series("m", points, job="api")]).status == 204
    # A tick that comes before the segment would leave out the tenant for some time.
    wait_until(lambda: door.samples("m", START - 1, points[-1][0]) != {}, "the samples", SECONDS)
    quiet.set("plan", PROMLAKE_PUBLISH_ICEBERG="true")
    try:
        first = {f"v1/{tenant}/iceberg/{name}/metadata/v1.metadata.json" for name in ("samples", "series")}

        def published() -> bool:
            assert quiet.tick()["error"] is None
            return first <= set(quiet.keys(f"v1/{tenant}/iceberg/"))

        wait_until(published, "the tables", SECONDS)
    finally:
        quiet.set("plan", PROMLAKE_PUBLISH_ICEBERG=None)

    script = block("iceberg", "for table in samples series")
    printed = run_shell(NO_TABLES + script, env={"BUCKET": bucket, "TENANT": tenant, "DATABASE": "metrics"})
    shape = quiet.client("glue").meta.service_model.operation_model("CreateTable").input_shape
    tables = {}
    for database, text in re.findall(r"DatabaseName (\S+) TableInput (.*?);", printed, re.DOTALL):
        table = json.loads(text)
        validate_parameters({"DatabaseName": database, "TableInput": table}, shape)
        tables[table["Name"]] = table["Parameters"]["metadata_location"]
    store = Store(f"s3://{bucket}?endpoint={quiet.description['endpoint']}", Path(), KEYS | {"AWS_REGION": region})
    assert by_pyiceberg(tables, store) == Counter(("m", (("job", "api"),), t, repr(v)) for t, v in points)
