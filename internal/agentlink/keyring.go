package agentlink

import (
	"sync"

	"github.com/musterhq/muster/internal/agentproto"
)

// maxKeys bounds the keyring: some 20 MiB.
const maxKeys = 100_000

// keyring remembers devices' keys, which seldom change, so that a request costs
// one statement of the database: that statement compares the key (Store.Contact).
type keyring struct {
	mu   sync.RWMutex
	keys map[string]agentproto.PublicKey // by device
}

func (k *keyring) get(device string) (agentproto.PublicKey, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	key, known := k.keys[device]
	return key, known
}

// put remembers a key. A full ring starts again: what is used comes back.
func (k *keyring) put(device string, key agentproto.PublicKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil || len(k.keys) >= maxKeys {
		k.keys = map[string]agentproto.PublicKey{}
	}
	k.keys[device] = key
}
