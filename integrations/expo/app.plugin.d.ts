import type { ConfigPlugin } from "@expo/config-plugins";

/** Where the indexes go. Without any option, to the server or the stores in the environment variables SYMDEX_SERVER or
 * SYMDEX_STORE. */
export interface Options {
  /** The URL of the server that gets the indexes. */
  server?: string;
  /** The folder for the indexes, relative to the project. */
  indexes?: string;
  /** The program; by default the one on the PATH. */
  symdex?: string;
}

declare const withSymdex: ConfigPlugin<Options | void>;
export default withSymdex;
