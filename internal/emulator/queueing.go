package emulator

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	vendor "google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/emulator/pubsub"
)

// pubsubMethods are the methods of Cloud Pub/Sub that the emulator has.
func pubsubMethods() map[string]handler {
	return map[string]handler{
		"pubsub.projects.topics.create":                   createTopic,
		"pubsub.projects.topics.get":                      getTopic,
		"pubsub.projects.topics.list":                     listTopics,
		"pubsub.projects.topics.delete":                   deleted((*pubsub.Broker).DeleteTopic),
		"pubsub.projects.topics.publish":                  withBody(publishMessages),
		"pubsub.projects.subscriptions.create":            withBody(createSubscription),
		"pubsub.projects.subscriptions.get":               getSubscription,
		"pubsub.projects.subscriptions.list":              listSubscriptions,
		"pubsub.projects.subscriptions.delete":            deleted((*pubsub.Broker).DeleteSubscription),
		"pubsub.projects.subscriptions.pull":              withBody(pullMessages),
		"pubsub.projects.subscriptions.acknowledge":       withBody(acknowledgeMessages),
		"pubsub.projects.subscriptions.modifyAckDeadline": withBody(modifyAckDeadline),
	}
}

// queueStatus gives the broker's errors the vendor's form.
func queueStatus(err error) error {
	problem, ok := errors.AsType[*pubsub.Error](err)
	if !ok {
		return err
	}
	resource := problem.Resource[strings.LastIndexByte(problem.Resource, '/')+1:]
	if errors.Is(err, pubsub.ErrExists) {
		return failAs("ALREADY_EXISTS", "Resource already exists in the project (resource=%s).", resource)
	}
	return fail(http.StatusNotFound, "Resource not found (resource=%s).", resource)
}

func topicAnswer(name string) *vendor.Topic { return &vendor.Topic{Name: name, State: "ACTIVE"} }

func createTopic(e *Emulator, c *call) (any, error) {
	return e.changed(topicAnswer(c.name()), e.broker.CreateTopic(c.name()))
}

// changed is the answer of a method that changed the queues, unless that failed.
func (e *Emulator) changed(answer any, err error) (any, error) {
	if err != nil {
		return nil, queueStatus(err)
	}
	e.markDirty()
	return answer, nil
}

func getTopic(e *Emulator, c *call) (any, error) {
	if !e.broker.HasTopic(c.name()) {
		return nil, queueStatus(&pubsub.Error{Err: pubsub.ErrNotFound, Resource: c.name()})
	}
	return topicAnswer(c.name()), nil
}

func listTopics(e *Emulator, c *call) (any, error) {
	part, next, err := page(c, e.broker.Topics(c.segment(1)), func(name string) string { return name }, topicAnswer, 100, 1000)
	return &vendor.ListTopicsResponse{Topics: part, NextPageToken: next}, err
}

// deleted is the method that deletes what a call names.
func deleted(remove func(*pubsub.Broker, string) error) handler {
	return func(e *Emulator, c *call) (any, error) { return e.changed(empty{}, remove(e.broker, c.name())) }
}

func publishMessages(e *Emulator, c *call, request *vendor.PublishRequest) (any, error) {
	if len(request.Messages) == 0 || len(request.Messages) > 1000 {
		return nil, invalid("The value for message_count must be between 1 and 1000.")
	}
	answer := &vendor.PublishResponse{}
	for _, m := range request.Messages {
		data, err := base64.StdEncoding.DecodeString(m.Data)
		if err != nil {
			data, err = base64.URLEncoding.DecodeString(m.Data)
		}
		if err != nil || len(data) == 0 && len(m.Attributes) == 0 {
			return nil, invalid("Some messages in the publish request are empty or invalid.")
		}
		receipt, err := e.broker.Publish(c.name(), pubsub.Message{Data: data, Attributes: m.Attributes, OrderingKey: m.OrderingKey})
		if err != nil {
			return nil, queueStatus(err)
		}
		answer.MessageIds = append(answer.MessageIds, receipt.ID)
	}
	e.markDirty()
	return answer, nil
}

func subscriptionAnswer(s pubsub.Subscription) *vendor.Subscription {
	topic := cmp.Or(s.Topic, topicName(strings.Split(s.Name, "/")[1]))
	return &vendor.Subscription{Name: s.Name, Topic: topic, AckDeadlineSeconds: int64(s.AckDeadline / time.Second),
		MessageRetentionDuration: "604800s", State: "ACTIVE"}
}

func createSubscription(e *Emulator, c *call, want *vendor.Subscription) (any, error) {
	if push, _ := c.body["pushConfig"].(map[string]any); len(push) > 0 {
		return nil, fail(http.StatusNotImplemented, "The emulator does not have push subscriptions.")
	}
	if want.AckDeadlineSeconds != 0 && (want.AckDeadlineSeconds < 10 || want.AckDeadlineSeconds > 600) {
		return nil, invalid("Invalid ack deadline given: the value must be between 10 and 600 seconds.")
	}
	s := pubsub.Subscription{Name: c.name(), Topic: want.Topic, AckDeadline: time.Duration(want.AckDeadlineSeconds) * time.Second}
	if want.Topic == "" {
		return nil, invalid("Invalid resource name given (name=): a subscription needs a topic.")
	}
	if !e.Settings().StrictPubSub {
		_ = e.broker.CreateTopic(want.Topic)
	}
	if err := e.broker.CreateSubscription(s); err != nil {
		return nil, queueStatus(err)
	}
	e.markDirty()
	return getSubscription(e, c)
}

func getSubscription(e *Emulator, c *call) (any, error) {
	s, err := e.broker.Subscription(c.name())
	if err != nil {
		return nil, queueStatus(err)
	}
	return subscriptionAnswer(s), nil
}

func listSubscriptions(e *Emulator, c *call) (any, error) {
	part, next, err := page(c, e.broker.Subscriptions(c.segment(1)), func(s pubsub.Subscription) string { return s.Name },
		subscriptionAnswer, 100, 1000)
	return &vendor.ListSubscriptionsResponse{Subscriptions: part, NextPageToken: next}, err
}

// pullMessages delivers messages, or waits a while for one. Unless the settings are
// strict, a subscription that does not exist is made, to every topic of its project.
func pullMessages(e *Emulator, c *call, request *vendor.PullRequest) (any, error) {
	if request.MaxMessages < 1 {
		return nil, invalid("Invalid value for maxMessages: it must be positive.")
	}
	settings := e.Settings()
	wait := cmp.Or(time.Duration(settings.PullWaitMS)*time.Millisecond, 5*time.Second)
	if request.ReturnImmediately {
		wait = 0
	}
	if !settings.StrictPubSub {
		_ = e.broker.CreateSubscription(pubsub.Subscription{Name: c.name()}) // one that exists stays
	}
	ctx, cancel := e.untilClosing(c.ctx)
	defer cancel()
	received, err := e.broker.Pull(ctx, c.name(), min(int(request.MaxMessages), 1000), wait)
	if err != nil && ctx.Err() != nil { // the caller went away, or the emulator ends
		return nil, usual(http.StatusServiceUnavailable)
	}
	if err != nil {
		return nil, queueStatus(err)
	}
	answer := &vendor.PullResponse{}
	for _, r := range received {
		m := r.Message
		answer.ReceivedMessages = append(answer.ReceivedMessages, &vendor.ReceivedMessage{AckId: r.AckID, Message: &vendor.PubsubMessage{
			MessageId: m.ID, PublishTime: m.PublishTime.UTC().Format(time.RFC3339Nano),
			Data: base64.StdEncoding.EncodeToString(m.Data), Attributes: m.Attributes, OrderingKey: m.OrderingKey}})
	}
	return answer, nil
}

// untilClosing gives a context that ends with the request or the emulator.
func (e *Emulator) untilClosing(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	stop := context.AfterFunc(e.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func acknowledgeMessages(e *Emulator, c *call, request *vendor.AcknowledgeRequest) (any, error) {
	if len(request.AckIds) == 0 {
		return nil, invalid("No ack ids specified.")
	}
	return e.changed(empty{}, e.broker.Acknowledge(c.name(), request.AckIds))
}

func modifyAckDeadline(e *Emulator, c *call, request *vendor.ModifyAckDeadlineRequest) (any, error) {
	if seconds := request.AckDeadlineSeconds; seconds < 0 || seconds > 600 {
		return nil, invalid("Invalid ack deadline given: the value must be between 0 and 600 seconds.")
	}
	if len(request.AckIds) == 0 {
		return nil, invalid("No ack ids specified.")
	}
	return e.changed(empty{}, e.broker.ModifyAckDeadline(c.name(), request.AckIds, time.Duration(request.AckDeadlineSeconds)*time.Second))
}

// markDirty notes that the state changed, without the lock.
func (e *Emulator) markDirty() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touch()
}
