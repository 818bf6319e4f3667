// Package e2e tests long flows of a whole service: devices with the agent, the Android
// app's core, processes that are killed, replicas, upgrades, sign-in and operation.
package e2e
