// The pictures in docs/images.

import { join } from "node:path";
import { crash, paste, withBrowser } from "./harness.mjs";

const folder = process.argv[2];
const save = (page, name) => page.screenshot({ path: join(folder, `${name}.png`) });

await withBrowser(async (open) => {
  const page = await open({ viewport: { width: 1100, height: 1240 } });
  await paste(page, crash);
  await save(page, "serve-report");
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.locator(".compare pre").first().waitFor();
  await page.setViewportSize({ width: 1100, height: 700 });
  await page.locator("#compare").evaluate((element) => element.scrollIntoView());
  await save(page, "serve-side-by-side");
  const phone = await open({ viewport: { width: 390, height: 780 }, colorScheme: "dark" });
  await paste(phone, crash);
  await phone.locator(".thread.crashed").evaluate((element) => element.scrollIntoView());
  await save(phone, "serve-phone");
});
