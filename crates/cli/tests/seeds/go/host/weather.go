package mytools

import (
	"context"
	"fmt"
)

func fetchWeather(_ context.Context, key, city, units string) (int, string, error) {
	if city == "Atlantis" {
		return 0, "", fmt.Errorf("city not found: %s", city)
	}
	if units == "fahrenheit" {
		return 54, "cloudy", nil
	}
	return 12, "cloudy", nil
}

func unitSymbol(units string) string {
	if units == "fahrenheit" {
		return "F"
	}
	return "C"
}
