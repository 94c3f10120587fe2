import { expect, test } from 'vitest'
import { startCluster } from '../support/redis-cluster.ts'
import { startSentinels } from '../support/redis-sentinel.ts'
import { aScene, keyOfSlot } from '../integration/redis/scene.ts'

test('a killed master costs no event: sentinels name another, and the daemon goes on', async () => {
  const redis = await startSentinels()
  const scene = await aScene(redis.yaml)
  try {
    scene.sandbox.addEvents(15)
    await scene.settled(15)
    scene.sandbox.addEvents(30) // on their way when the master dies
    await redis.killMaster()
    scene.sandbox.addEvents(15)
    await scene.settled(60)
    expect(scene.arrived()).toBe(60)
    await redis.restart()
  } finally {
    await scene.stop()
    await redis.stop()
  }
})

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

test('a Cluster whose master dies, and whose slots move, costs no event', async () => {
  const redis = await startCluster({ withReplicas: true })
  const scene = await aScene(redis.yaml)
  try {
    scene.sandbox.addEvents(15)
    await scene.settled(15)
    await redis.moveSlotOf(keyOfSlot.ledger)
    scene.sandbox.addEvents(15)
    await scene.settled(30)
    scene.sandbox.addEvents(30) // on their way when the master dies
    await redis.killMasterOf(keyOfSlot.queues)
    scene.sandbox.addEvents(15)
    await scene.settled(75)
    expect((await fetch(`${scene.url}/healthz`)).status).toBe(200)
  } finally {
    await scene.stop()
    await redis.stop()
  }
})
