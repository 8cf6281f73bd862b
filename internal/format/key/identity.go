package key

// Identity is the key of the object that tells a store from all others. It is written once.
const Identity = "store.json"
