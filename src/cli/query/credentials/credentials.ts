import { Command } from 'commander'
import type { Context } from '../../context.ts'
import { credentialsFeedCommand } from './credentials-feed.ts'
import { credentialsSearchCommand } from './credentials-search.ts'

export function credentialsCommand(context: Context): Command {
  return new Command('credentials')
    .addCommand(credentialsSearchCommand(context))
    .addCommand(credentialsFeedCommand(context))
}
