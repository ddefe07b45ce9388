// Precompiled: what nearly every translation unit of the tests includes.
#pragma once

#include "storage/asio_pch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
