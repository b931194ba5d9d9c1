// Where indexes come from. The page of the service has its own version of this file.

/** Who has indexes. */
export const OWNER = "This page";

/** What adds the index of a missing image, and how. */
export const ADD_INDEXES = "Choose dSYMs or indexes…";
export const ADD_INDEXES_HELP =
  "Choose the file inside of each dSYM (Contents/Resources/DWARF), the ELF file with debug information, or the " +
  "index, of the same build. A dSYM can also be dropped on this page.";

/** There are no pages of images. */
export const imageLink = () => null;
