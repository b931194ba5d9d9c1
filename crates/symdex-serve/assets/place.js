// Where indexes come from. The page of docs/try, which has no server, has its own version of this file.

/** Who has indexes. */
export const OWNER = "The server";

/** What adds the index of a missing image, and how. */
export const ADD_INDEXES = "Upload debug files…";
export const ADD_INDEXES_HELP =
  "Upload the dSYM (zipped or as a folder), the DWARF file in it, or the ELF file with debug information. It must be " +
  "of the same build: its UUID decides, not its name.";

/** The link to an image, and to an offset in it. */
export const imageLink = (id, offset) =>
  `#image=${encodeURIComponent(id)}${offset === undefined ? "" : `&address=${offset}`}`;
