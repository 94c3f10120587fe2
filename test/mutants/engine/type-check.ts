/** Whether the compiler takes the sources of a tree. The first time takes seconds, each change under one. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import type { Tree } from './tree.ts'

export interface TypeCheck {
  /** The compiler's words for what is wrong; empty where nothing is. */
  mistakes(): Promise<string>
}

const configFile = 'tsconfig.mutants.json'

/** What a change leaves unused or out of reach is no mistake of types. */
const config = {
  extends: './tsconfig.json',
  compilerOptions: {
    noUnusedLocals: false,
    noUnusedParameters: false,
    allowUnreachableCode: true,
    incremental: true,
    tsBuildInfoFile: './mutants.tsbuildinfo',
  },
  include: ['src'],
}

export function createTypeCheck(tree: Tree): TypeCheck {
  tree.write(configFile, JSON.stringify(config))
  const compiler = join(tree.root, 'node_modules/typescript/bin/tsc')
  return {
    mistakes: () =>
      new Promise((resolve) => {
        const options = { cwd: tree.root }
        execFile(process.execPath, [compiler, '-p', configFile], options, (error, printed) =>
          resolve(error === null ? '' : printed),
        )
      }),
  }
}
