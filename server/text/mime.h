// mime: media types. Pure.
#ifndef PHOTON_TEXT_MIME_H
#define PHOTON_TEXT_MIME_H

#include <stdbool.h>
#include "base/slice.h"

// The type for a file name's extension (with charset for text); application/octet-stream else.
struct slice mime_of_name(struct slice file_name);

// "application/json; charset=utf-8" → "application/json", in whatever case it came.
struct slice mime_essence(struct slice content_type);

// application/json or any +json type (RFC 6839 3.1), case and parameters ignored.
bool mime_is_json(struct slice content_type);

// The value of a parameter (case of its name ignored), quotes removed but escapes kept; false when
// it is not there (RFC 9110 5.6.6).
bool mime_parameter(struct slice content_type, struct slice name, struct slice *value);

#endif
