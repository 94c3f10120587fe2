import { expect, test } from 'vitest'
import { startSentinels } from '../support/redis-sentinel.ts'
import { aScene } from '../integration/redis/scene.ts'

test('a master that lives on as a replica takes no writes, and gets none', async () => {
  const redis = await startSentinels()
  const scene = await aScene(redis.yaml)
  try {
    scene.sandbox.addEvents(15)
    await scene.settled(15)
    await redis.demoteMaster()
    scene.sandbox.addEvents(15)
    await scene.settled(30)
    expect(scene.arrived()).toBe(30)
  } finally {
    await scene.stop()
    await redis.stop()
  }
})
