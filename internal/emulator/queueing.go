package emulator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/emulator/pubsub"
)

// pubsubMethods are the methods of Cloud Pub/Sub that the emulator has.
func pubsubMethods() map[string]handler {
	return map[string]handler{
		"pubsub.projects.topics.create":                   createTopic,
		"pubsub.projects.topics.get":                      getTopic,
		"pubsub.projects.topics.list":                     listTopics,
		"pubsub.projects.topics.delete":                   deleteTopic,
		"pubsub.projects.topics.publish":                  publishMessages,
		"pubsub.projects.subscriptions.create":            createSubscription,
		"pubsub.projects.subscriptions.get":               getSubscription,
		"pubsub.projects.subscriptions.list":              listSubscriptions,
		"pubsub.projects.subscriptions.delete":            deleteSubscription,
		"pubsub.projects.subscriptions.pull":              pullMessages,
		"pubsub.projects.subscriptions.acknowledge":       acknowledgeMessages,
		"pubsub.projects.subscriptions.modifyAckDeadline": modifyAckDeadline,
	}
}

// queueStatus gives the broker's errors the vendor's form.
func queueStatus(err error) error {
	var problem *pubsub.Error
	if !errors.As(err, &problem) {
		return err
	}
	resource := problem.Resource[strings.LastIndexByte(problem.Resource, '/')+1:]
	if errors.Is(err, pubsub.ErrExists) {
		return alreadyExists("Resource already exists in the project (resource=%s).", resource)
	}
	return fail(http.StatusNotFound, "Resource not found (resource=%s).", resource)
}

func topicTree(name string) map[string]any { return map[string]any{"name": name, "state": "ACTIVE"} }

func createTopic(e *Emulator, c *call) (any, error) {
	return e.changed(topicTree(c.name()), e.broker.CreateTopic(c.name()))
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
	return topicTree(c.name()), nil
}

func listTopics(e *Emulator, c *call) (any, error) {
	part, next, err := page(c, e.broker.Topics(c.segment(1)), func(name string) string { return name }, 100, 1000)
	if err != nil {
		return nil, err
	}
	var topics []any
	for _, name := range part {
		topics = append(topics, topicTree(name))
	}
	return listAnswer("topics", topics, next), nil
}

// listAnswer is a page of a list; empty members are left out.
func listAnswer(name string, items []any, next string) map[string]any {
	answer := map[string]any{}
	if len(items) > 0 {
		answer[name] = items
	}
	if next != "" {
		answer["nextPageToken"] = next
	}
	return answer
}

func deleteTopic(e *Emulator, c *call) (any, error) {
	return e.changed(empty{}, e.broker.DeleteTopic(c.name()))
}

func publishMessages(e *Emulator, c *call) (any, error) {
	var request struct {
		Messages []struct {
			Data        string            `json:"data"`
			Attributes  map[string]string `json:"attributes"`
			OrderingKey string            `json:"orderingKey"`
		} `json:"messages"`
	}
	if err := fromTree(c.body, &request); err != nil {
		return nil, err
	}
	if len(request.Messages) == 0 || len(request.Messages) > 1000 {
		return nil, invalid("The value for message_count must be between 1 and 1000.")
	}
	var ids []string
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
		ids = append(ids, receipt.ID)
	}
	e.markDirty()
	return map[string]any{"messageIds": ids}, nil
}

func subscriptionTree(s pubsub.Subscription) map[string]any {
	topic := s.Topic
	if topic == "" {
		topic = topicName(strings.Split(s.Name, "/")[1], DefaultTopic)
	}
	return map[string]any{
		"name": s.Name, "topic": topic, "ackDeadlineSeconds": int(s.AckDeadline / time.Second),
		"messageRetentionDuration": "604800s", "state": "ACTIVE",
	}
}

func createSubscription(e *Emulator, c *call) (any, error) {
	var want struct {
		Topic              string          `json:"topic"`
		AckDeadlineSeconds int             `json:"ackDeadlineSeconds"`
		PushConfig         json.RawMessage `json:"pushConfig"`
	}
	if err := fromTree(c.body, &want); err != nil {
		return nil, err
	}
	if len(want.PushConfig) > 2 { // more than {}
		return nil, fail(http.StatusNotImplemented, "The emulator does not have push subscriptions.")
	}
	if want.AckDeadlineSeconds != 0 && (want.AckDeadlineSeconds < 10 || want.AckDeadlineSeconds > 600) {
		return nil, invalid("Invalid ack deadline given: the value must be between 10 and 600 seconds.")
	}
	s := pubsub.Subscription{Name: c.name(), Topic: want.Topic, AckDeadline: time.Duration(want.AckDeadlineSeconds) * time.Second}
	if want.Topic == "" {
		return nil, invalid("Invalid resource name given (name=): a subscription needs a topic.")
	}
	if !e.strictPubSub() {
		_ = e.broker.CreateTopic(want.Topic)
	}
	if err := e.broker.CreateSubscription(s); err != nil {
		return nil, queueStatus(err)
	}
	e.markDirty()
	return e.subscriptionAnswer(s.Name)
}

func (e *Emulator) subscriptionAnswer(name string) (any, error) {
	s, err := e.broker.Subscription(name)
	if err != nil {
		return nil, queueStatus(err)
	}
	return subscriptionTree(s), nil
}

func getSubscription(e *Emulator, c *call) (any, error) { return e.subscriptionAnswer(c.name()) }

func listSubscriptions(e *Emulator, c *call) (any, error) {
	part, next, err := page(c, e.broker.Subscriptions(c.segment(1)), func(s pubsub.Subscription) string { return s.Name }, 100, 1000)
	if err != nil {
		return nil, err
	}
	var found []any
	for _, s := range part {
		found = append(found, subscriptionTree(s))
	}
	return listAnswer("subscriptions", found, next), nil
}

func deleteSubscription(e *Emulator, c *call) (any, error) {
	return e.changed(empty{}, e.broker.DeleteSubscription(c.name()))
}

// onDemand makes a subscription that does not exist, to every topic of its project,
// unless the settings are strict.
func (e *Emulator) onDemand(name string) {
	if !e.strictPubSub() {
		_ = e.broker.CreateSubscription(pubsub.Subscription{Name: name}) // one that exists stays
	}
}

func (e *Emulator) strictPubSub() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.settings.StrictPubSub
}

// pullMessages delivers messages, or waits a while for one.
func pullMessages(e *Emulator, c *call) (any, error) {
	limit, err := bodyInt(c, "maxMessages")
	if err != nil || limit < 1 {
		return nil, invalid("Invalid value for maxMessages: it must be positive.")
	}
	e.mu.Lock()
	wait := e.settings.pullWait()
	e.mu.Unlock()
	if c.body["returnImmediately"] == true {
		wait = 0
	}
	e.onDemand(c.name())
	ctx, cancel := e.untilClosing(c.ctx)
	defer cancel()
	received, err := e.broker.Pull(ctx, c.name(), min(limit, 1000), wait)
	if err != nil && ctx.Err() != nil { // the caller went away, or the emulator ends
		return nil, fail(http.StatusServiceUnavailable, "The service is currently unavailable.")
	}
	if err != nil {
		return nil, queueStatus(err)
	}
	var messages []any
	for _, r := range received {
		messages = append(messages, map[string]any{"ackId": r.AckID, "message": messageTree(r.Message)})
	}
	return listAnswer("receivedMessages", messages, ""), nil
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

func messageTree(m pubsub.Message) map[string]any {
	tree := map[string]any{"messageId": m.ID, "publishTime": m.PublishTime.UTC().Format(time.RFC3339Nano)}
	if len(m.Data) > 0 {
		tree["data"] = base64.StdEncoding.EncodeToString(m.Data)
	}
	if len(m.Attributes) > 0 {
		tree["attributes"] = m.Attributes
	}
	if m.OrderingKey != "" {
		tree["orderingKey"] = m.OrderingKey
	}
	return tree
}

func acknowledgeMessages(e *Emulator, c *call) (any, error) {
	ids := bodyStrings(c, "ackIds")
	if len(ids) == 0 {
		return nil, invalid("No ack ids specified.")
	}
	return e.changed(empty{}, e.broker.Acknowledge(c.name(), ids))
}

func modifyAckDeadline(e *Emulator, c *call) (any, error) {
	seconds, err := bodyInt(c, "ackDeadlineSeconds")
	if err != nil || seconds < 0 || seconds > 600 {
		return nil, invalid("Invalid ack deadline given: the value must be between 0 and 600 seconds.")
	}
	ids := bodyStrings(c, "ackIds")
	if len(ids) == 0 {
		return nil, invalid("No ack ids specified.")
	}
	if err := e.broker.ModifyAckDeadline(c.name(), ids, time.Duration(seconds)*time.Second); err != nil {
		return nil, queueStatus(err)
	}
	return empty{}, nil
}

func bodyInt(c *call, name string) (int, error) {
	number, _ := c.body[name].(json.Number)
	if number == "" {
		return 0, nil
	}
	return strconv.Atoi(string(number))
}

func bodyStrings(c *call, name string) []string {
	list, _ := c.body[name].([]any)
	var texts []string
	for _, element := range list {
		text, _ := element.(string)
		texts = append(texts, text)
	}
	return texts
}

// markDirty notes that the state changed, without the lock.
func (e *Emulator) markDirty() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touch()
}
