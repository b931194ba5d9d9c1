// Where indexes come from. The page of the service has its own version of this file.

/** Who has indexes. */
export const OWNER = "This page";

/** What adds the index of a missing image, and how. */
export const ADD_INDEXES = "Choose indexes…";
export const ADD_INDEXES_HELP =
  "Choose the index of each, a file named after its UUID or build id. symdex build makes it from the dSYM or the ELF " +
  "file with debug information of the same build.";

/** There are no pages of images. */
export const imageLink = () => null;
