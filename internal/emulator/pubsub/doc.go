// Package pubsub is a small Cloud Pub/Sub broker in memory: topics,
// subscriptions that are pulled, acknowledgment deadlines and redelivery.
//
// It keeps the vendor's promises and no more: a message is delivered at least
// once to each subscription that existed when it was published, in no promised
// order. Memory is bounded: a subscription holds at most [MaxBacklog] messages
// for at most [Retention].
package pubsub
