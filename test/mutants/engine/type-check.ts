/** Whether the compiler takes a changed file: its server stays loaded, so that each change costs little. */
import { join } from 'node:path'
import { API, type Diagnostic } from 'typescript/unstable/sync'
import type { Tree } from './tree.ts'

export interface TypeCheck {
  /** What is wrong with the file as it stands in the tree now; empty: nothing. */
  mistakesIn(file: string): string[]
  stop(): void
}

const configFile = 'tsconfig.mutants.json'

/** What a change leaves unused or out of reach is no mistake of types. */
const config = {
  extends: './tsconfig.json',
  compilerOptions: {
    noUnusedLocals: false,
    noUnusedParameters: false,
    allowUnreachableCode: true,
  },
  include: ['src'],
}

/** Throws where the sources do not compile as they are. */
export function createTypeCheck(tree: Tree): TypeCheck {
  tree.write(configFile, JSON.stringify(config))
  const configPath = join(tree.root, configFile)
  const api = new API({ cwd: tree.root })
  const project = api.updateSnapshot({ openProjects: [configPath] }).getProject(configPath)
  const mistakes = project?.program.getSemanticDiagnostics().map(describe)
  if (mistakes === undefined || mistakes.length > 0) {
    api.close()
    throw new Error(`the sources do not compile without a change: ${mistakes?.[0] ?? configPath}`)
  }
  return {
    mistakesIn(file) {
      const path = join(tree.root, file)
      const snapshot = api.updateSnapshot({ fileChanges: { changed: [path] } })
      const program = snapshot.getProject(configPath)?.program
      const found = [
        ...(program?.getSyntacticDiagnostics(path) ?? []),
        ...(program?.getSemanticDiagnostics(path) ?? []),
      ].map(describe)
      snapshot.dispose()
      return found
    },
    stop: () => api.close(),
  }
}

function describe({ fileName, text }: Diagnostic): string {
  return `${fileName ?? ''}: ${text}`
}
