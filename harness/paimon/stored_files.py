"""A table's folder as files by name: in object storage, or on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import urllib3
from minio import Minio
from minio.error import MinioException, S3Error

from harness.errors import ReaderError
from harness.model import TableContract
from harness.paimon.warehouse import Warehouse

_TIMEOUT_S = 20
_RETRIES = urllib3.Retry(total=4, backoff_factor=0.2, status_forcelist=[500, 502, 503, 504])
CONNECTIONS = 8
"""How many files may be read at once. More do not help on two cores, and a small MinIO throttles them."""


class StoredFiles(Protocol):
    """The files under one table's folder; paths are relative to it. Any thread may ask."""

    def read(self, path: str) -> bytes | None:
        """A file's content, None when storage says that it is not there. Raises ReaderError."""
        ...

    def sizes(self, under: str = "") -> dict[str, int]:
        """Every file under a folder of the table with its size in bytes. Raises ReaderError."""
        ...


def stored_files(warehouse: Warehouse, contract: TableContract) -> StoredFiles:
    """The files of a table of the sink. Source: Paimon 1.3 docs, "File Layouts" (database.db/table)."""
    database, table = contract.sink.split(".")
    place = urlsplit(warehouse.path)
    folder = f"{place.path.rstrip('/')}/{database}.db/{table}"
    if place.scheme not in ("s3", "s3a", "s3p"):
        return FolderFiles(Path(folder))
    endpoint = urlsplit(warehouse.outside)
    client = Minio(
        endpoint=endpoint.netloc,
        access_key=warehouse.credentials.user,
        secret_key=warehouse.credentials.secret,
        secure=endpoint.scheme == "https",
        region="us-east-1",
        http_client=urllib3.PoolManager(timeout=_TIMEOUT_S, retries=_RETRIES, maxsize=CONNECTIONS),
    )
    return BucketFiles(client, bucket=place.netloc, folder=folder.lstrip("/"))


class BucketFiles:
    """A folder of a bucket. Implements StoredFiles."""

    def __init__(self, client: Minio, *, bucket: str, folder: str) -> None:
        self._client = client
        self._bucket = bucket
        self._folder = folder

    def read(self, path: str) -> bytes | None:
        try:
            answer = self._client.get_object(self._bucket, f"{self._folder}/{path}")
            try:
                content: bytes = answer.read()
            finally:
                answer.close()
                answer.release_conn()
        except S3Error as error:
            if error.code == "NoSuchKey":
                return None
            raise _unreadable(path, error) from error
        except (MinioException, urllib3.exceptions.HTTPError) as error:
            raise _unreadable(path, error) from error
        return content

    def sizes(self, under: str = "") -> dict[str, int]:
        start = f"{self._folder}/"
        try:
            found = self._client.list_objects(self._bucket, prefix=start + under, recursive=True)
            return {item.object_name.removeprefix(start): item.size for item in found if not item.is_dir}
        except (MinioException, urllib3.exceptions.HTTPError) as error:
            raise _unreadable(f"the list of {under or 'all files'}", error) from error


class FolderFiles:
    """A folder of this machine. Implements StoredFiles."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str) -> bytes | None:
        try:
            return (self._folder / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from error

    def sizes(self, under: str = "") -> dict[str, int]:
        try:
            found = [path for path in (self._folder / under).rglob("*") if path.is_file()]
            return {path.relative_to(self._folder).as_posix(): path.stat().st_size for path in found}
        except OSError as error:
            raise _unreadable(f"the list of {under or 'all files'}", error) from error


def _unreadable(what: str, error: Exception) -> ReaderError:
    return ReaderError(f"storage did not give {what}: {type(error).__name__}: {error}")
