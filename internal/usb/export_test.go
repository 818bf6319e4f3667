package usb

// DeviceOf is deviceOf.
var DeviceOf = deviceOf
