import { existsSync } from 'node:fs'
import { loadConfig, type LoadedConfig } from '../config/load.ts'
import type { Context } from './context.ts'

const usualPlaces = ['config/tocsin.yaml', 'tocsin.yaml'] as const

/** The configuration that was named, else the one in its usual place. Throws ConfigError. */
export function loadConfigFile({ env }: Context, named: string | undefined): LoadedConfig {
  return loadConfig({ path: named ?? usualConfigFile(), env })
}

export function usualConfigFile(): string {
  return usualPlaces.find((place) => existsSync(place)) ?? usualPlaces[0]
}
