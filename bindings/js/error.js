/** An error of this package. `kind` says what is wrong, `message` what was found and what helps. */
export class SymdexError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "SymdexError";
    this.kind = kind;
  }
}
