# The docstrings are those of the extension module, for editors. A test compares them.
from array import array
from collections.abc import Iterable
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Literal, SupportsIndex, TypeAlias, final, overload

from typing_extensions import Buffer

_Path: TypeAlias = str | PathLike[str]
_Paths: TypeAlias = _Path | Iterable[_Path]
_Lines: TypeAlias = Literal["statement", "exact"]
# A NumPy array is a buffer.
_Offsets: TypeAlias = Iterable[SupportsIndex] | Buffer
_Outcome: TypeAlias = Literal["written", "unchanged", "kept", "replaced", "repaired"]

__all__ = [
    "BuildResult",
    "BuiltImage",
    "Columns",
    "DamagedError",
    "Error",
    "Frame",
    "Index",
    "Metadata",
    "MissingError",
    "SourceWarning",
    "Store",
    "StoreEntry",
    "Symbolicator",
    "UnavailableError",
    "UnsupportedError",
    "__version__",
    "build",
    "demangle",
]
__version__: str

class Error(Exception):
    """Something could not be read, built, found or written.

    The message says what was found, what was expected, and what to do.
    The subclasses tell the cases apart that programs treat differently.
    """
    # What was built, if `build` has raised the exception; otherwise None.
    result: BuildResult | None

class DamagedError(Error):
    """A file, an index or a report is damaged. Copying or building it again helps."""

class UnsupportedError(Error):
    """A file is of a kind or version that symdex does not read, or this build has no code for a kind of store."""

class MissingError(Error, FileNotFoundError):
    """A file, an image or an architecture that was asked for is not there."""

class UnavailableError(Error):
    """A store cannot be reached or is overloaded. The same call may succeed later."""

class SourceWarning(UserWarning):
    """A source of answers or a part of an input is left out, because it cannot be read. The others are used."""

@final
class Frame:
    """A function at an address: the innermost inlined one comes first in an answer.

    Frames compare equal if all their attributes are equal, can be counted in a dict, and can be pickled.
    """
    def __new__(
        cls,
        name: bytes | None,
        file: bytes | None,
        line: int | None,
        inlined: bool,
        function_start: int | None,
        table: Literal["dwarf", "symbol_table"],
    ) -> Frame: ...
    def __getnewargs__(self) -> tuple[bytes | None, bytes | None, int | None, bool, int | None, str]: ...
    @property
    def function(self) -> str | None:
        """The readable name, such as ``ns::Widget::draw(int) const``; ``None`` if the code has no name."""
    @property
    def name(self) -> str | None:
        """The mangled name, as linkers see it, without the underscore that Mach-O files begin names with."""
    @property
    def file(self) -> str | None:
        """The path of the source file, as the debug information states it."""
    @property
    def line(self) -> int | None:
        """The line, from 1 on; 0 for code that the compiler generated; ``None`` if there is no line."""
    @property
    def inlined(self) -> bool:
        """Whether the function is inlined into the next frame. The last frame is not inlined."""
    @property
    def function_start(self) -> int | None:
        """The image offset at which the function starts that is not inlined."""
    @property
    def table(self) -> Literal["dwarf", "symbol_table"]:
        """Where the frame comes from: ``"dwarf"`` (debug information) or ``"symbol_table"`` (names only)."""
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Columns:
    """The frames of many lookups, as columns with one row for each frame.

    The columns are ``array.array`` objects, which ``numpy.asarray`` takes without a copy. The frames of offset ``i``
    are the rows ``starts[i]`` to ``starts[i + 1]``, the innermost first. A gap has no rows.

    >>> columns = index.lookup_columns(offsets)                         # doctest: +SKIP
    >>> lines = numpy.asarray(columns.line)                             # doctest: +SKIP
    >>> depths = numpy.diff(numpy.asarray(columns.starts))              # doctest: +SKIP
    >>> functions = numpy.array(columns.functions)[columns.name]        # doctest: +SKIP
    """
    @property
    def starts(self) -> array[int]:
        """The first row of each offset, and at the end the number of rows (64 bits)."""
    @property
    def name(self) -> array[int]:
        """The position in ``functions`` and ``names``; -1 if the code has no name (32 bits)."""
    @property
    def file(self) -> array[int]:
        """The position in ``files``; -1 if there is no file (32 bits)."""
    @property
    def line(self) -> array[int]:
        """The line; 0 for code that the compiler generated, -1 if there is no line (64 bits)."""
    @property
    def inlined(self) -> array[int]:
        """1 if the function is inlined into that of the next row, otherwise 0 (8 bits)."""
    @property
    def function_start(self) -> array[int]:
        """The image offset at which the function starts that is not inlined; -1 if it is not known (64 bits)."""
    @property
    def has_debug_information(self) -> array[int]:
        """1 if the frame comes from debug information, 0 if from the symbol table (8 bits)."""
    @property
    def functions(self) -> list[str]:
        """The readable names. Two mangled names can have the same readable name."""
    @property
    def names(self) -> list[str]:
        """The mangled names, in the order of ``functions``."""
    @property
    def files(self) -> list[str]:
        """The paths of source files."""
    def __len__(self) -> int: ...

@final
class Metadata:
    """What an index states about its image and its build."""
    @property
    def id(self) -> str:
        """The id of the image: its ``LC_UUID`` or build id in lower-case hexadecimal digits."""
    @property
    def image_name(self) -> str:
        """The file name of the image."""
    @property
    def arch(self) -> str:
        """The architecture, such as ``"arm64"``."""
    @property
    def base(self) -> int:
        """The address in the debug file that image offsets count from."""
    @property
    def image_size(self) -> int:
        """The number of bytes from the base to the end of the code."""
    @property
    def executable(self) -> list[tuple[int, int]]:
        """The executable sections, as half-open ranges of image offsets."""
    @property
    def text_exec_base(self) -> int | None:
        """The address of ``__TEXT_EXEC`` in the debug file of a kernel image."""
    @property
    def segments(self) -> list[list[int]] | None:
        """The position in the file, the address and the size of each executable segment of an ELF file. Empty if the
        index was built of a debug file without code; ``None`` if of no ELF file.
        """
    @property
    def grade(self) -> Literal["lines", "names", "bounds", "nothing"]:
        """The most that the index answers: ``"lines"``, ``"names"``, ``"bounds"`` (no names) or ``"nothing"``."""
    @property
    def units(self) -> int:
        """The number of compile units. It is 0 if the index has names from a symbol table only."""
    @property
    def functions(self) -> int:
        """The number of functions with debug information."""
    @property
    def ranges(self) -> int:
        """The number of ranges with debug information."""
    @property
    def symbols(self) -> int:
        """The number of ranges of the symbol table."""
    @property
    def names(self) -> int:
        """The number of distinct names."""
    @property
    def files(self) -> int:
        """The number of distinct source files."""
    @property
    def partial(self) -> list[tuple[str, int]]:
        """What could not be indexed: reasons, and how often each occurred. Empty for a whole index."""
    @property
    def builder(self) -> str:
        """The version of symdex that built the index."""

@final
class Index:
    """The symbol index of one image: maps addresses to functions, files and lines.

    Open one with :meth:`open`, :meth:`from_bytes` or :meth:`Store.find`. Any number of threads may use an index. Each
    thread that looks up addresses keeps up to 16 MiB of answers for all indexes.

    Addresses are given as *image offsets*: bytes from the start of the image. :meth:`image_offset` makes one of an
    address in a crashed process.

    >>> index = Index.open("testdata/golden/v1/inline-dwarf4-1.symdex")
    >>> for frame in index.lookup(0x3cf):
    ...     print(frame.function, frame.line)
    cell 9
    row 16
    mip 6
    pyramid 11
    """
    @staticmethod
    def open(path: _Path, *, map: bool | None = None) -> Index:
        """Opens the index file at ``path``.

        By default, a file that only this user can change is mapped into memory, and other files are read: whoever
        truncates a mapped file ends this process. ``map`` chooses one of the two.

        Raises UnsupportedError if the file is no index or of a newer format, DamagedError if it is damaged, and
        MissingError if it does not exist.
        """
    @staticmethod
    def from_bytes(data: Buffer) -> Index:
        """Opens the index in ``data``, which is copied.

        Raises DamagedError or UnsupportedError, as :meth:`open`.
        """
    @property
    def id(self) -> str:
        """The id of the image: its ``LC_UUID`` or build id in lower-case hexadecimal digits."""
    @property
    def image_name(self) -> str:
        """The file name of the image."""
    @property
    def arch(self) -> str:
        """The architecture, such as ``"arm64"``."""
    @property
    def metadata(self) -> Metadata:
        """What the index states about its image and its build."""
    def image_offset(self, address: int, load_address: int, *, return_address: bool) -> int | None:
        """Returns the image offset of an address in a process, or ``None`` if the address is below ``load_address``.

        ``load_address`` is where the image was loaded. ``return_address`` tells whether the address is one to return
        to, as in all frames of a stack but the first: it is then looked up in the call instruction before it.
        """
    def lookup(self, offset: int, *, lines: _Lines = "statement") -> list[Frame]:
        """Returns the frames at an image offset, the innermost inlined function first. A gap, where the image has no
        known code, has no frames.

        ``lines`` says what code with line 0 gets: ``"statement"`` the line of the last statement before it in the same
        inlined call, ``"exact"`` its own, as atos and llvm-symbolizer print it.

        Raises DamagedError if a part of the index that the lookup reads is damaged.
        """
    def lookup_many(self, offsets: _Offsets, *, lines: _Lines = "statement") -> list[list[Frame]]:
        """Returns the frames at each of many image offsets, in the order of the offsets: a list of lists.

        ``offsets`` is an iterable of integers, or a NumPy array of 64-bit integers, which is faster. They may be in
        any order and repeat. ``lines`` is as in :meth:`lookup`. An image in a store is asked once for all offsets.

        Raises DamagedError if a part of the index that one of the lookups reads is damaged.
        """
    def lookup_columns(self, offsets: _Offsets, *, lines: _Lines = "statement") -> Columns:
        """As :meth:`lookup_many`, but returns columns with numbers and distinct strings: less memory for many offsets,
        and fast with NumPy.
        """
    def function_names(self, start: int) -> list[str]:
        """Returns the mangled names that the symbol table has for the function that starts at the image offset
        ``start``, a :attr:`Frame.function_start`. A linker that folds identical functions leaves many names for one
        function.
        """
    def verify(self) -> None:
        """Reads the whole index and checks it.

        Raises DamagedError if any part of it is damaged. Lookups check what they read, so that this is not needed
        before them.
        """
    def to_bytes(self) -> bytes:
        """Returns the bytes of the index file."""

@final
class Store:
    """A store of indexes: a folder, or a server.

    ``url`` is the path of a folder or one of the URLs that the command takes: ``s3://BUCKET/PREFIX``, ``gs://...``,
    ``az://...``, ``https://HOST/PATH`` (read only), ``redis://HOST:PORT/DB``, ``redis+cluster://...`` and their forms
    with TLS. Credentials are read from the environment, as docs/STORES.md says. Nothing is connected until a method is
    called.

    ``timeout`` is the time in seconds that a store may take to answer. ``cache`` is a folder in which indexes of object
    stores are kept, up to ``cache_size`` bytes.

    >>> store = Store("/srv/indexes")                                   # doctest: +SKIP
    >>> index = store.find("4C4C4477-5555-3144-A170-308419376AFA")      # doctest: +SKIP
    """
    def __new__(
        cls, url: _Path, *, timeout: float = 10.0, cache: _Path | None = None, cache_size: int = 10_000_000_000
    ) -> Store: ...
    @property
    def url(self) -> str:
        """The URL of the store, without user names, passwords and queries."""
    @property
    def is_read_only(self) -> bool:
        """Whether the store can only be read."""
    def find(self, id: str) -> Index | None:
        """Opens the index of the image ``id``; returns ``None`` if the store has none. Dashes and upper case in the id
        are accepted, as reports write ids. An index that lookups do not need whole is fetched in parts.

        Raises DamagedError if the index is damaged, and UnavailableError if the store cannot be reached.
        """
    def put(self, index: Index) -> _Outcome:
        """Puts ``index`` into the store, unless the store has the same index or a better one of the image.

        Returns what became of it: ``"written"``, ``"unchanged"``, ``"kept"`` (the other index), ``"replaced"`` or
        ``"repaired"`` (the other index was damaged). Readers find the old index or the whole new one.
        """
    def stat(self, id: str) -> StoreEntry | None:
        """Returns what the store states of the index of ``id``, without reading it; ``None`` if it has none."""
    def remove(self, id: str) -> bool:
        """Removes the index of ``id``. Returns whether the store had it."""
    def ids(self) -> list[str]:
        """Returns the ids of all images in the store, in no particular order."""
    def __contains__(self, id: str, /) -> bool: ...

@final
class StoreEntry:
    """What a store states of one index. An attribute is ``None`` if the store does not state it."""
    @property
    def id(self) -> str:
        """The id of the image."""
    @property
    def image_name(self) -> str | None:
        """The name of the image."""
    @property
    def location(self) -> str:
        """Where the index is: a path, or a URL with a key."""
    @property
    def stored_size(self) -> int:
        """How many bytes the store keeps, compressed or not."""
    @property
    def index_size(self) -> int | None:
        """The size of the index in bytes."""
    @property
    def written(self) -> datetime | None:
        """When the index was written."""
    @property
    def last_use(self) -> datetime | None:
        """When the index was used last. Stores record uses at most once a day."""
    @property
    def expires(self) -> datetime | None:
        """When the store removes the index by itself."""

@final
class Symbolicator:
    """Symbolicates crash reports from indexes, stores and debug files. Threads can share it.

    Name at least one source. They are asked in this order:

    * ``indexes``: index files, and folders of them that are searched with the folders below;
    * ``stores``: paths of folders or URLs, as for :class:`Store`; ``timeout``, ``cache`` and ``cache_size`` are those
      of :class:`Store`;
    * ``debug_files``: dSYMs, ELF files, archives, and folders of debug files. ``debug_dirs`` are searched for files
      that these refer to. With a store, the index of a debug file is put into the first store that can be written.

    ``match_by_name`` also answers images without an id, from the only index of their name and architecture. Such an
    answer can be of another build.

    A source that cannot be read is left out with a :class:`SourceWarning`. MissingError is raised if an index or a
    folder of indexes does not exist.
    """
    def __new__(
        cls,
        *,
        indexes: _Paths | None = None,
        stores: _Paths | None = None,
        debug_files: _Paths | None = None,
        debug_dirs: _Paths | None = None,
        match_by_name: bool = False,
        timeout: float = 10.0,
        cache: _Path | None = None,
        cache_size: int = 10_000_000_000,
    ) -> Symbolicator: ...
    @overload
    def symbolicate(
        self,
        report: str,
        *,
        format: Literal["native", "text"] = "native",
        lines: _Lines = "statement",
        addresses: Literal["adjusted", "as-given"] = "adjusted",
        inlines: bool = True,
        demangle: bool = True,
        only_missing: bool = False,
    ) -> str: ...
    @overload
    def symbolicate(
        self,
        report: Buffer | PathLike[str],
        *,
        format: Literal["native"] = "native",
        lines: _Lines = "statement",
        addresses: Literal["adjusted", "as-given"] = "adjusted",
        inlines: bool = True,
        demangle: bool = True,
        only_missing: bool = False,
    ) -> bytes: ...
    @overload
    def symbolicate(
        self,
        report: Buffer | PathLike[str],
        *,
        format: Literal["text"],
        lines: _Lines = "statement",
        addresses: Literal["adjusted", "as-given"] = "adjusted",
        inlines: bool = True,
        demangle: bool = True,
        only_missing: bool = False,
    ) -> str: ...
    @overload
    def symbolicate(
        self,
        report: str | Buffer | PathLike[str],
        *,
        format: Literal["json"],
        lines: _Lines = "statement",
        addresses: Literal["adjusted", "as-given"] = "adjusted",
        inlines: bool = True,
        demangle: bool = True,
        only_missing: bool = False,
    ) -> dict[str, Any]: ...
    # A table of pyarrow, which is not needed to check types.
    def resolve(self, ids: Any, addresses: Any, *, lines: _Lines = "statement") -> Any:
        """Resolves many addresses of any number of images. Returns a ``pyarrow.Table`` with a row for each address, in
        their order. Needs pyarrow.

        ``ids`` are the ids of the images: one for each address, or a ``str`` for all. ``addresses`` are image offsets.
        Both are arrays of pyarrow or NumPy, or lists. They may be in any order and repeat; ascending addresses of one
        image after the other are the fastest. ``lines`` is as in :meth:`Index.lookup`.

        The columns are ``status`` (``"symbolicated"``, ``"missing_symbol"``, or why the image or the address has no
        answer, such as ``"missing"`` or ``"damaged"``), ``reason``, ``function_start``, ``table`` and ``frames``: a list
        of ``function``, ``name``, ``file`` and ``line``, the innermost function first. All but the last are inlined into
        the next one. Texts are dictionaries, each chunk of the table has its own, and the memory is not copied.

        Raises ValueError if an id or an address is wrong or null.

        >>> table = symbolicator.resolve(ids, addresses)                    # doctest: +SKIP
        >>> table.column("frames")[0].as_py()[0]["function"]                # doctest: +SKIP
        """

@final
class BuiltImage:
    """An image whose index was built."""
    @property
    def id(self) -> str:
        """The id of the image."""
    @property
    def image_name(self) -> str:
        """The file name of the image."""
    @property
    def arch(self) -> str:
        """The architecture."""
    @property
    def file(self) -> PathLike[str]:
        """The debug file."""
    @property
    def debug_size(self) -> int:
        """The size of the debug information in bytes."""
    @property
    def index_size(self) -> int:
        """The size of the index in bytes."""
    @property
    def has_debug_information(self) -> bool:
        """Whether the debug file has debug information. Otherwise, the index has the names of its symbol table."""
    @property
    def warnings(self) -> list[str]:
        """What is odd about the debug file but changes no answer."""
    @property
    def outcome(self) -> _Outcome | None:
        """What the output or the store did with the index, as :meth:`Store.put` returns it; ``None`` without both."""
    @property
    def location(self) -> str | None:
        """Where the index is: a path, or a URL with a key; ``None`` without an output and a store."""
    @property
    def index(self) -> Index | None:
        """The index, if it was put nowhere."""

@final
class BuildResult:
    """What :func:`build` made of its inputs."""
    @property
    def images(self) -> list[BuiltImage]:
        """The images that have an index now, in the order of the inputs."""
    @property
    def failures(self) -> list[Exception]:
        """The exceptions of the inputs and images that have none. Empty unless ``check=False``."""

def build(
    inputs: _Paths,
    output: _Path | None = None,
    *,
    store: Store | None = None,
    archs: Iterable[str] | None = None,
    ids: Iterable[str] | None = None,
    debug_dirs: _Paths | None = None,
    symbol_maps: _Paths | None = None,
    jobs: int = 0,
    max_memory: int = 1_000_000_000,
    verify: bool = False,
    readable_names: bool = False,
    on_conflict: Literal["more", "keep", "replace"] = "more",
    check: bool = True,
) -> BuildResult:
    """Builds the indexes of debug files.

    ``inputs`` are dSYMs, ``.xcarchive`` folders, ELF or Mach-O files, folders, and archives (zip, tar, gzip, zstd): one
    path or an iterable of paths. The indexes go to one of:

    * ``output``, a folder, in files named by the ids of the images. It is created if it does not exist;
    * ``store``, a :class:`Store`;
    * neither: :attr:`BuiltImage.index` is then the open index.

    ``archs`` and ``ids`` restrict the images. ``debug_dirs`` are searched for files that debug files refer to, and
    ``symbol_maps`` reveal hidden names. ``jobs`` is the number of threads, by default one for each core; ``max_memory``
    limits the memory of builds in bytes. ``verify`` compares each index with its debug file, which takes longer.
    ``readable_names`` adds readable names to the indexes, for readers that have no demangler. ``on_conflict`` decides
    which of two different indexes of an id stays: ``"more"`` (the one with more functions), ``"keep"`` or
    ``"replace"``. An index that is up to date is not built again.

    Inputs that can be read are built even if others fail. Then the exception of the gravest failure is raised, with a
    :class:`BuildResult` as its attribute ``result``; with ``check=False``, the result is returned instead. Signals are
    handled while a build runs: Ctrl-C ends it. Raises ValueError for more than 1024 jobs.

    Debug files are read in this process. For untrusted files, run ``symdex build --isolate``.

    >>> [image] = build("testdata/dsyms/inline-dwarf4.dSYM").images
    >>> image.index.lookup(0x3cf)[0].function
    'cell'
    """
def demangle(name: str) -> str:
    """Returns the readable text of a mangled name. A name that no demangler reads is returned unchanged.

    >>> demangle("_ZN3foo3barEi")
    'foo::bar(int)'
    """
