import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["shared/**/*.test.ts", "layout/**/*.test.ts", "conflict/**/*.test.ts", "whatif/**/*.test.ts", "pipeline/**/*.test.ts", "program/**/*.test.ts", "resources/**/*.test.ts", "trace/**/*.test.ts", "labextension/**/*.test.ts"], environment: "node" } });
